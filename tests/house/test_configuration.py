"""Every setting is documented in one place, and nothing is documented that does not exist."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from rowlock.cli.program import program
from tests.house.reading import ROOT, package

GUIDE = ROOT / "docs" / "guides" / "configuration.md"
_VARIABLE = re.compile(r"\b(?:ROWLOCK_[A-Z_]+[A-Z]|DATABASE_URL)\b")
_ROW = re.compile(r"^\| (\w+) \|(.*)\|$", re.MULTILINE)


def guide() -> str:
    return GUIDE.read_text(encoding="utf-8")


def rows() -> dict[str, str]:
    """The table of the guide: a setting's name, and the rest of its row."""
    return {name: rest for name, rest in _ROW.findall(guide()) if name != "setting"}


def test_every_variable_that_the_code_names_is_documented_and_no_other() -> None:
    named = {variable for source in package() for variable in _VARIABLE.findall(source.text)}

    assert named == set(_VARIABLE.findall(guide()))


def test_every_setting_is_documented_in_the_order_in_which_it_is_shown() -> None:
    shown = CliRunner().invoke(program, ["config", "--json"], catch_exceptions=False)

    assert list(json.loads(shown.output)) == list(rows())


@pytest.mark.parametrize("name", rows())
def test_a_setting_has_the_options_and_variables_of_its_row(name: str) -> None:
    options = [option for option in program.commands["worker"].params if option.name == name]
    documented = rows()[name]

    for option in options:
        assert f"`{option.opts[0]}`" in documented
        assert option.envvar is None or f"`{option.envvar}`" in documented
    assert bool(options) == ("`--" in documented)
