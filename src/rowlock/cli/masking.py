"""Records as a terminal may show them: without the secrets in arguments, results and messages, as on the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

import click

from rowlock.model.redact import redact, redact_text

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., object])

# Names of things, which code gives and commands are typed with: `auth:login` is a task.
_NAMES: Final = frozenset(
    ("id", "task", "queue", "state", "kind", "key", "tags", "name", "step", "path", "signal", "code", "waits_for")
)


def reveal_option(command: Command) -> Command:
    """Give a command `--reveal`."""
    return click.option("--reveal", is_flag=True, help="Show secrets, too, in place of ***.")(command)


def masked(value: T, *, reveal: bool = False) -> T:
    """The same record, or several, with `***` for each secret; with `reveal` as it is."""
    return value if reveal else cast("T", _masked(value))


def _masked(value: Any) -> Any:  # noqa: ANN401, PLR0911  whatever a command shows
    match value:
        case str():
            return redact_text(value)
        case tuple() if not hasattr(value, "_make"):
            return tuple(map(_masked, value))
        case list() if any(map(is_dataclass, value)):
            return [_masked(one) for one in value]
        case Mapping() if any(map(is_dataclass, value.values())):
            return {name: _masked(one) for name, one in value.items()}
        case Mapping():
            return redact(dict(value))
        case list():
            return redact(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return _record(value)
        case _:
            return value


def _record(value: Any) -> Any:  # noqa: ANN401  a dataclass of any kind
    changed = {}
    for field in fields(value):
        before = getattr(value, field.name)
        if field.init and field.name not in _NAMES and (after := _masked(before)) != before:
            changed[field.name] = after
    return replace(value, **changed) if changed else value
