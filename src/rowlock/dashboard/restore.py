"""Restore: put the stored secrets back where an edited form still shows ***."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rowlock.errors import InvalidArguments
from rowlock.model.redact import MARK, redact


def restored(said: Mapping[str, Any], stored: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON value
    """Edited arguments, with the stored secret for each `***`; refused where that is unknown."""
    shown, known = (redact(stored), stored) if isinstance(stored, Mapping) else ({}, {})
    return {name: _value(name, value, shown.get(name), known.get(name)) for name, value in said.items()}


def _value(name: str, said: Any, shown: Any, stored: Any) -> Any:  # noqa: ANN401  any JSON values
    if _same(said, shown):
        return stored
    match said, shown:
        case dict(), dict():
            return {key: _value(name, one, shown.get(key), stored.get(key)) for key, one in said.items()}
        case list(), list() if len(said) == len(shown):
            return [_value(name, *pair) for pair in zip(said, shown, stored, strict=True)]
        case dict(), _:
            return {key: _value(name, one, None, None) for key, one in said.items()}
        case list(), _:
            return [_value(name, one, None, None) for one in said]
        case str(), _ if MARK in said:
            raise InvalidArguments(
                f"argument {name!r} has {MARK} in it, which stands for a secret that is not shown; write all of it "
                "again, or leave it as it was"
            )
        case _:
            return said


def _same(one: object, other: object) -> bool:
    """Whether they are the same JSON: 1, 1.0 and true are three things."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)
