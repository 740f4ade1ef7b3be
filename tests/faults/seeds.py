"""Chance that can be had again: every test of the fault suite draws from a seed, and the summary says which."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass

import pytest

VARIABLE = "ROWLOCK_FAULT_SEED"
_PROPERTY = "faults"


@dataclass(frozen=True)
class Trial:
    """One run of one test: where its chance comes from, and what it counted."""

    random: random.Random
    counts: dict[str, int]

    def count(self, **counts: int) -> None:
        """Say in the summary how much was done."""
        self.counts.update({name.replace("_", " "): number for name, number in counts.items()})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault-seed", type=int, metavar="N", help=f"the seed of tests/faults (also ${VARIABLE})")


def begin(item: pytest.Item) -> Trial:
    """Draw a seed for this test, and tell it in the summary."""
    given = item.config.getoption("--fault-seed")
    seed = int(os.environ.get(VARIABLE) or random.SystemRandom().randrange(2**32)) if given is None else int(given)
    # By reference: what is counted later is told, too.
    counts: dict[str, int] = {"seed": seed}
    item.user_properties.append((_PROPERTY, counts))
    return Trial(random.Random(seed), counts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = {
        report.nodeid: dict(counts)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, counts in report.user_properties
        if name == _PROPERTY and isinstance(counts, dict)
    }
    if told:
        terminalreporter.section(f"faults: seeds and counts (again with --fault-seed or ${VARIABLE})")
    for test, counts in sorted(told.items()):
        terminalreporter.line(f"{test}: " + ", ".join(f"{name} {number}" for name, number in counts.items()))
