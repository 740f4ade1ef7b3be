"""Masking: hides secrets from everybody, arguments and results from viewers.

One pass over everything that a page or a command shows, before it becomes HTML, JSON or a table, so that no page can
forget it. Users' data is recognised by its type: a field that may hold anything (`Any`) holds arguments or a result.
Where it is text, it is recognised by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast, get_args, get_type_hints

from pydantic import JsonValue

from rowlock.explain.phrases import error_of
from rowlock.model.explanation import Explanation
from rowlock.model.record import JobError
from rowlock.model.redact import redact, redact_text

T = TypeVar("T")

_USERS: Final = frozenset(
    (
        *("args", "arguments", "kwargs", "result", "input", "payload", "form", "declared", "edits", "changes"),
        *("error", "errors", "last_error", "message", "traceback", "frames", "workflow_state"),
    )
)
"""Fields that hold users' data."""
# Fields that hold names, which code gives and links are made of: `auth:login` is a task.
_NAMES: Final = frozenset(
    (
        *("name", "named", "task", "tasks", "queue", "queues", "schedule", "schedules", "workflow", "workflows"),
        *("step", "current_step", "signal", "path", "to"),
    )
)
# Fields that may hold anything but are made by us: without the names above, everybody may see them.
_OURS: Final = frozenset(("details", "facts"))
# Fields that may be long and are shown as they are. Others, such as forms, are short, and templates take them apart.
_LONG: Final = frozenset(("args", "arguments", "kwargs", "result", "input", "payload", "workflow_state"))
# Reasons that go on with names and values of arguments, or with the message of a handler's error.
_UNFIT: Final = re.compile(
    r"^(arguments do not fit|its attempt could not be brought to an end|its code raised|what is around its code raised|"
    r"what it returns does not fit|it cannot restart|the state of version \d+ could not be carried over|changed code)"
    r"\b.*",
    re.DOTALL,
)
_BLOCKED: Final = {
    "changed": "Its code has changed since it began.",
    "fault": "A fault of its code, or of what is around it, blocks it; it is tried again, and by new code.",
}
_FAILED: Final = re.compile(r", after (?:[0-9]|one|a ).*", re.DOTALL)


class ValueBudget(Protocol):
    """How much of its values a page can show."""

    def fit(self, value: Any) -> Any:  # noqa: ANN401  any JSON value
        """The value without its secrets, or the beginning of it."""


class Verbatim(str):
    """A text of our own, such as a statement: nothing in it is a secret, whatever it looks like."""

    __slots__ = ()


def mask(shown: T, *, show_arguments: bool, budget: ValueBudget | None = None) -> T:
    """A copy of the values without what must not be seen; with a `budget`, long values are cut to fit it."""
    return cast("T", _Masker(show_arguments, budget).value(shown))


class _Masker:
    """One pass: `whole` says that users' data may be seen, `budget` how much of it fits."""

    def __init__(self, whole: bool, budget: ValueBudget | None) -> None:  # noqa: FBT001  as mask says it
        self._whole, self._budget = whole, budget

    def value(self, value: Any) -> Any:  # noqa: ANN401  whatever a page shows
        match value:
            case str():
                return value if isinstance(value, Verbatim) else redact_text(value)
            case Mapping():
                return {key: self.value(one) for key, one in value.items()}
            case list() | tuple() | set() | frozenset():
                made = [self.value(one) for one in value]
                return value._make(made) if hasattr(value, "_make") else type(value)(made)
            case _ if is_dataclass(value) and not isinstance(value, type):
                return self._record(_in_outline(value) if isinstance(value, Explanation) and not self._whole else value)
            case _:
                return value

    def _record(self, value: Any) -> Any:  # noqa: ANN401  a dataclass of any kind
        kind = type(value)
        changed: dict[str, Any] = {}
        for field in fields(value):
            before = getattr(value, field.name)
            after = self._field(before, field.name, kind)
            if after is not before and after != before:
                changed[field.name] = after
        return replace(value, **changed) if changed else value

    def _field(self, value: Any, name: str, kind: Any) -> Any:  # noqa: ANN401  whatever a page shows
        is_open = name in _open_fields(kind)
        if _is_made_of_records(value):
            return self.value(value)
        if name in _NAMES and not is_open:
            return value
        if is_open:
            return self._open(dict(value) if isinstance(value, Mapping) else value, name)
        if not self._whole and name in _USERS and isinstance(value, str | tuple | list | dict):
            return type(value)()
        if not self._whole and name == "reason" and isinstance(value, str):
            return self.value(_UNFIT.sub(r"\1", value))
        return self.value(value)

    def _open(self, value: Any, name: str) -> Any:  # noqa: ANN401  any JSON value
        """A field that may hold anything."""
        if not self._whole:
            return redact(_without(value)) if name in _OURS else None
        return redact(value) if self._budget is None or name not in _LONG else self._budget.fit(value)


def _without(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """A JSON value without the fields that hold users' data."""
    match value:
        case Mapping():
            return {
                key: _UNFIT.sub(r"\1", one) if key == "reason" and isinstance(one, str) else _without(one)
                for key, one in value.items()
                if key not in _USERS
            }
        case list():
            return [_without(one) for one in value]
        case _:
            return value


def _in_outline(explanation: Explanation) -> Explanation:
    """An explanation for those who may not see errors."""
    says = explanation.says
    if "message" in explanation.facts:
        kind = str(explanation.facts.get("error"))
        last = JobError(kind, str(explanation.facts["message"]), "", 0, None, None, None)
        says = says.replace(error_of(last), kind)
    if explanation.code == "misfit":
        says = "Its arguments no longer fit the task."
    says = _BLOCKED.get(explanation.code, says)
    also = tuple(_FAILED.sub(".", sentence) for sentence in explanation.also)
    return replace(explanation, says=_FAILED.sub(".", says) if explanation.code == "retrying" else says, also=also)


@cache
def _open_fields(kind: Any) -> frozenset[str]:  # noqa: ANN401  a dataclass
    """The fields that may hold anything; all of them, where that cannot be explanation."""
    try:
        hints = get_type_hints(kind)
    except NameError:
        return frozenset(field.name for field in fields(kind))
    return frozenset(name for name, hint in hints.items() if _is_open(hint))


def _is_open(hint: object) -> bool:
    return hint in (Any, object, JsonValue) or isinstance(hint, TypeVar) or any(map(_is_open, get_args(hint)))


def _is_made_of_records(value: Any) -> bool:  # noqa: ANN401  whatever a page shows
    """Whether it is a value of ours, or several: then its own fields say what may be seen of it."""
    match value:
        case tuple() | list():
            return any(map(_is_made_of_records, value))
        case Mapping():
            return any(map(_is_made_of_records, value.values()))
        case _:
            return is_dataclass(value) and not isinstance(value, type)
