"""The museum's mutants stay what they are while the code moves on: `./run mutants` runs them."""

from __future__ import annotations

import re

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT


def test_every_mutant_still_changes_our_code() -> None:
    for change in (change for mutant in MUTANTS for change in mutant.changes):
        text = (ROOT / "src" / "rowlock" / change.file).read_text()

        assert text.count(change.text) == 1, f"{change.file} has not once {change.text!r}"
        assert change.instead != change.text


def test_every_mutants_killer_is_still_there() -> None:
    gone = {mutant.name: mutant.killer for mutant in MUTANTS if not is_there(mutant.killer)}

    assert gone == {}


def is_there(killer: str) -> bool:
    file, _, test = killer.partition("::")
    text = (ROOT / file).read_text()
    return re.search(rf"^(async )?def {test.partition('[')[0]}\(", text, re.MULTILINE) is not None


def test_every_mutant_has_a_number_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
