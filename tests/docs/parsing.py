"""Blocks that configure other programs are not run here, but they must parse."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable

_YAML_LINE = re.compile(r"( *)((?:- )*)(?:([\w./-]+):(?: (.+))?|(.+))")
_OPENERS = {"[": "]", "{": "}"}


def parse_ini(text: str) -> configparser.ConfigParser:
    """A systemd unit, or another file of sections; a name may occur twice."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert parser.sections(), "no section"
    return parser


def parse_toml(text: str) -> None:
    """TOML."""
    tomllib.loads(text)


def parse_json(text: str) -> None:
    """JSON."""
    json.loads(text)


def parse_dockerfile(text: str) -> list[tuple[str, str]]:
    """Instructions and what follows them; a list must be JSON."""
    joined = text.replace("\\\n", " ")
    found = [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "ARG", "RUN", "CMD", "ENTRYPOINT", "COPY", "WORKDIR", "ENV", "USER", "STOPSIGNAL", "EXPOSE"}
    assert found, "no instruction"
    assert found[0][0] == "FROM", "the first instruction is FROM"
    for one in found:
        assert len(one) == 2, f"{one} lacks what it is about"
        assert one[0] in known, f"{one[0]} is no instruction"
        if one[1].startswith("["):
            json.loads(one[1])
    return [(one[0], one[1]) for one in found]


def parse_yaml(text: str) -> None:
    """The plain YAML of our pages, by its shape: two spaces a level, no tabs, a child only under what opens one."""
    depths, may_open = [0], True
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition(" #")[0].rstrip()
        if not bare or bare.lstrip().startswith("#") or bare == "---":
            if bare == "---":
                depths, may_open = [0], True
            continue
        assert "\t" not in bare, f"line {number}: a tab"
        shape = _YAML_LINE.fullmatch(bare)
        assert shape is not None, f"line {number}: {line!r}"
        depth = len(shape[1])
        if depth > depths[-1]:
            assert may_open, f"line {number}: deeper than its parent allows"
            assert depth == depths[-1] + 2, f"line {number}: two spaces a level"
            depths.append(depth)
        while depth < depths[-1]:
            depths.pop()
        assert depth == depths[-1], f"line {number}: at no level"
        if shape[2]:  # `- name: value` opens a mapping, two columns further in
            depths.append(depth + len(shape[2]))
        value = shape[4] or shape[5] or ""
        assert shape[3] or shape[2], f"line {number}: neither `name:` nor `- item`"
        may_open = shape[3] is not None and not value
        if value[:1] in _OPENERS:
            assert value[-1] == _OPENERS[value[0]], f"line {number}: {value[0]} is not closed"


PARSED: dict[str, Callable[[str], object]] = {
    "dockerfile": parse_dockerfile,
    "ini": parse_ini,
    "json": parse_json,
    "toml": parse_toml,
    "yaml": parse_yaml,
}
