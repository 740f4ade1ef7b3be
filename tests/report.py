"""What the end of a run says: the time of each folder beside its budget, the slowest tests, what was skipped and why.

Nothing here fails a run, for how long a test takes is the machine's affair; `tests/house` holds the number of tests.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.budget import BUDGET, folder_of

_SLOWEST = 10
# Only a run of much of the suite has something to say about its folders.
_MANY = 300
# A skipped test here proves nothing, and must not look as if it did.
_LOUD = ("tests/faults/", "tests/dashboard/")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    took: defaultdict[str, float] = defaultdict(float)
    for report in _reports(terminalreporter):
        took[report.nodeid] += report.duration
    if len(took) >= _MANY:
        _tell_folders(terminalreporter, took)
        _tell_slowest(terminalreporter, took)
    if not took and terminalreporter.config.getoption("markexpr") == "not deep":
        terminalreporter.line("no quick test is among these; ./run test --deep runs the deep ones (tests/README.md)")
    _tell_skipped(terminalreporter)


def _reports(terminalreporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport]:
    for reports in terminalreporter.stats.values():
        yield from (report for report in reports if isinstance(report, pytest.TestReport))


def _tell_folders(terminalreporter: pytest.TerminalReporter, took: dict[str, float]) -> None:
    seconds: defaultdict[str, float] = defaultdict(float)
    for test, duration in took.items():
        seconds[folder_of(test)] += duration
    tests = Counter(folder_of(test) for test in took)
    terminalreporter.section(f"time of each folder, {sum(seconds.values()):.0f} s over all test processes")
    budgets = {} if terminalreporter.config.getoption("markexpr") == "deep" else BUDGET
    for folder in sorted(seconds, key=seconds.__getitem__, reverse=True):
        budget = budgets.get(folder)
        over = budget is not None and seconds[folder] > budget.seconds
        beside = f" of {budget.seconds:4} s" if budget else ""
        line = f"{seconds[folder]:7.1f} s{beside}  {tests[folder]:5} tests  {folder}"
        terminalreporter.line(line + ("  OVER ITS BUDGET" if over else ""), red=over)


def _tell_slowest(terminalreporter: pytest.TerminalReporter, took: dict[str, float]) -> None:
    terminalreporter.section(f"slowest {_SLOWEST}")
    for test in sorted(took, key=took.__getitem__, reverse=True)[:_SLOWEST]:
        terminalreporter.line(f"{took[test]:7.1f} s  {test}")


def _tell_skipped(terminalreporter: pytest.TerminalReporter) -> None:
    skipped: defaultdict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", ()):
        if isinstance(report.longrepr, tuple):
            skipped[str(report.longrepr[2]).removeprefix("Skipped: ")].append(report.nodeid)
    if skipped:
        terminalreporter.section("skipped")
    for reason, tests in skipped.items():
        loud = any(test.startswith(_LOUD) for test in tests)
        terminalreporter.line(f"{'NOT TESTED, ' if loud else ''}{len(tests)} tests: {reason}", red=loud, bold=loud)
