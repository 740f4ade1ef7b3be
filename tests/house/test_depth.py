"""The quick suite stays quick, and guards everything: each folder has a budget, and each mutant a quick killer."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.budget import BUDGET, folder_of
from tests.depth import deep
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT

pytestmark = deep  # it collects everything once more; `./run check` runs all of this folder


@pytest.fixture(scope="module")
def quick() -> list[str]:
    """The names of all quick tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not deep", "tests"]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout
    return [line for line in collected.stdout.splitlines() if "::" in line]


def test_no_folder_has_more_quick_tests_than_its_budget_allows(quick: list[str]) -> None:
    tests = Counter(folder_of(test) for test in quick)

    assert tests.keys() == BUDGET.keys()
    over = {folder: count for folder, count in tests.items() if count > BUDGET[folder].tests}
    assert over == {}, "mark what only seldom finds something as deep, or raise the budget in tests/budget.py"


def test_every_mutant_has_a_quick_killer_or_a_reason(quick: list[str]) -> None:
    killers = {test.partition("[")[0] for test in quick} | set(quick)

    assert {mutant.name: mutant.killer for mutant in MUTANTS if mutant.killer not in killers and not mutant.deep} == {}
    assert [mutant.name for mutant in MUTANTS if mutant.killer in killers and mutant.deep] == []
