"""The museum's mutants stay what they are while the code moves on: `./run mutants` runs them."""

from __future__ import annotations

import re

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_still_changes_our_code(mutant: Mutant) -> None:
    for change in mutant.changes:
        text = (ROOT / "src" / "rowlock" / change.file).read_text()

        assert text.count(change.text) == 1, f"{change.file} has not once {change.text!r}"
        assert change.instead != change.text


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutants_killer_is_still_there(mutant: Mutant) -> None:
    file, _, test = mutant.killer.partition("::")

    assert re.search(rf"^(async )?def {test.partition('[')[0]}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_every_mutant_has_a_number_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
