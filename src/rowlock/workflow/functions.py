"""The functions that steps call: what to call, by what name, and how what they answer is remembered."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from rowlock.errors import WorkflowError
from rowlock.model.handler import Handler
from rowlock.model.payload import Result

# Longer inputs are not remembered, and so not compared: a record is no place for documents.
_LONGEST_INPUT = 16 * 1024
_LONGEST_NAME = 200


class Known(NamedTuple):
    """What is known of a function that steps call: whether it is awaited on the loop, else it runs in a thread; and how
    what it answers is remembered.
    """

    is_async: bool
    result: Result


_known: WeakKeyDictionary[Callable[..., Any], Known] = WeakKeyDictionary()
# What both ways to write JSON write alike: they must, for an enumeration may come back as what it stands for.
_SCALARS = frozenset({str, int, bool, type(None)})
_PLAIN = json.JSONEncoder(sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def function_of(called: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where a task is given."""
    handler = getattr(called, "handler", None)
    if not isinstance(handler, Handler):
        return called
    if handler.is_workflow:
        raise WorkflowError(
            f"{handler.spec.name!r} is a workflow, and no step of another; run it as a child: ctx.run(….bind(…))"
        )
    return handler.function


def known_of(function: Callable[..., Any]) -> Known:
    """What is known of it; found out once, for every step asks."""
    try:
        known = _known.get(function)
        if known is None:
            known = _known[function] = _found_out(function)
    except TypeError:  # it takes no weak reference, or is not hashable
        return _found_out(function)
    return known


def _found_out(function: Callable[..., Any]) -> Known:
    return Known(is_async=_is_async(function), result=Result.of(function))


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def name_of(function: Callable[..., Any]) -> str:
    """What a step of it is called unless it is given a name."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise WorkflowError("a lambda has no name to be remembered by; say ctx.using(name=…).step(…)")
    return name


@lru_cache(1024)  # every step asks
def check_name(name: str) -> str:
    """A name of a step or a signal: printable, and without what stands between it and its branch or number."""
    if not name or not name.isprintable() or "/" in name or "#" in name:
        raise WorkflowError(f"{name!r} cannot name a step or a signal: use printable characters other than / and #")
    if len(name.encode()) > _LONGEST_NAME:
        raise WorkflowError(f"the name {name[:40]!r}… is longer than {_LONGEST_NAME} bytes")
    return name


def input_of(args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
    """What a call is given, where that is plain JSON and short: a replay must give the same."""
    if not args and not kwargs:
        return None
    try:
        if not kwargs and _SCALARS.issuperset(map(type, args)):  # most are, and every step asks
            text = to_json(args).decode()
        else:
            text = _PLAIN.encode([*args, kwargs] if kwargs else args)
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= _LONGEST_INPUT and "\\u0000" not in text and text.isprintable() else None
