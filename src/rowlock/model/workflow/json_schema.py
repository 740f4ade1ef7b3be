"""JSON Schema check: whether a value fits, and where not, in words for people.

It knows as much of JSON Schema as types and forms use, and ignores the rest: the workflow that waits for the value
validates it once more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from operator import ge, gt, le, lt
from typing import Any, Final
from uuid import UUID

_DEEPEST: Final = 40
_MOST_NAMED: Final = 8
_TYPES: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
}
# In this order: to Python, True is an int.
_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
)
_LIMITS: Final[tuple[tuple[str, Callable[[float, float], bool], str], ...]] = (
    ("minimum", ge, "at least"),
    ("exclusiveMinimum", gt, "more than"),
    ("maximum", le, "at most"),
    ("exclusiveMaximum", lt, "less than"),
)
_FORMATS: Final = {
    "date": (date.fromisoformat, "a date, as 2026-03-01"),
    "date-time": (datetime.fromisoformat, "a date and a time, as 2026-03-01T08:00:00Z"),
    "time": (time.fromisoformat, "a time, as 08:00"),
    "uuid": (UUID, "a UUID"),
}


def schema_faults(schema: Any, value: Any) -> tuple[str, ...]:  # noqa: ANN401  any JSON
    """The faults of a value, each as a sentence without its full stop; none if it fits."""
    return tuple(_Reader(schema).faults(schema, value, "", 0))


def resolve_reference(schema: Any, root: Any) -> Any:  # noqa: ANN401  any JSON
    """A schema, with its `$ref` into the same document resolved; {} if the reference leads nowhere."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        beside = {name: said for name, said in schema.items() if name != "$ref"}
        found = _at(root, schema["$ref"])
        schema = {**found, **beside} if isinstance(found, Mapping) else {}
    return {}


def _at(root: Any, place: object) -> Any:  # noqa: ANN401  any JSON
    if not isinstance(place, str) or not place.startswith("#"):
        return None
    found = root
    for part in filter(None, place[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def type_of(value: object) -> str:
    """The type of a JSON value."""
    if isinstance(value, float) and value.is_integer():
        return "integer"
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "array")


class _Reader:
    """One check of a value: `root` is the document that `$ref` refers to."""

    def __init__(self, root: Any) -> None:  # noqa: ANN401  any JSON
        self._root = root

    def faults(self, said: Any, value: Any, place: str, depth: int) -> Iterator[str]:  # noqa: ANN401  any JSON
        if said is False:
            yield f"{place or 'it'} must be left out"
        schema = resolve_reference(said, self._root)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return
        wrong = list(_by_type(schema, value)) or [*_by_list(schema, value), *_by_size(schema, value)]
        yield from (f"{place or 'it'} {fault}" for fault in wrong)
        if wrong:
            return
        yield from self._combined(schema, value, place, depth + 1)
        if isinstance(value, Mapping):
            yield from self._members(schema, value, place, depth + 1)
        elif isinstance(value, list):
            yield from self._items(schema, value, place, depth + 1)

    def _combined(self, schema: Mapping[str, Any], value: Any, place: str, depth: int) -> Iterator[str]:  # noqa: ANN401  any JSON
        for part in _several(schema.get("allOf")):
            yield from self.faults(part, value, place, depth)
        for name in ("anyOf", "oneOf"):
            parts = _several(schema.get(name))
            wrong = [list(self.faults(part, value, place, depth)) for part in parts]
            if parts and all(wrong):
                # If one schema alone is of its type, the faults by that one; of several, that none of them fits.
                near = [
                    one
                    for one, part in zip(wrong, parts, strict=True)
                    if not list(_by_type(resolve_reference(part, self._root), value))
                ]
                yield from near[0] if len(near) == 1 else [f"{place or 'it'} fits nothing of what it may be"]
            elif name == "oneOf" and sum(not one for one in wrong) > 1:
                yield f"{place or 'it'} fits more than one of what it may be"

    def _members(self, schema: Mapping[str, Any], value: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
        known = schema.get("properties")
        known = known if isinstance(known, Mapping) else {}
        for name in _several(schema.get("required")):
            if name not in value:
                yield f"{_inside(place, name)} is missing"
        for name, member in value.items():
            if name in known:
                yield from self.faults(known[name], member, _inside(place, name), depth)
            elif "additionalProperties" in schema:
                yield from self.faults(schema["additionalProperties"], member, _inside(place, name), depth)

    def _items(self, schema: Mapping[str, Any], value: list[Any], place: str, depth: int) -> Iterator[str]:
        first = _several(schema.get("prefixItems"))
        for index, item in enumerate(value):
            said = first[index] if index < len(first) else schema.get("items", True)
            yield from self.faults(said, item, f"{place}[{index}]", depth)


def _by_type(schema: Any, value: Any) -> Iterator[str]:  # noqa: ANN401  any JSON
    said = schema.get("type") if isinstance(schema, Mapping) else None
    named = [said] if isinstance(said, str) else [name for name in _several(said) if isinstance(name, str)]
    is_of = type_of(value)
    if named and is_of not in named and not (is_of == "integer" and "number" in named):
        yield f"must be {' or '.join(_TYPES.get(name, name) for name in named)}"


def _by_list(schema: Mapping[str, Any], value: Any) -> Iterator[str]:  # noqa: ANN401  any JSON
    allowed = [schema["const"]] if "const" in schema else _several(schema.get("enum"))
    if allowed and not any(_same(one, value) for one in allowed):
        named = ", ".join(json.dumps(one, ensure_ascii=False) for one in allowed[:_MOST_NAMED])
        more = f" and {len(allowed) - _MOST_NAMED} more" if len(allowed) > _MOST_NAMED else ""
        yield f"must be {named}" if len(allowed) == 1 else f"must be one of {named}{more}"


def _by_size(schema: Mapping[str, Any], value: Any) -> Iterator[str]:  # noqa: ANN401  any JSON
    match value:
        case bool() | None:
            return
        case int() | float():
            yield from _by_amount(schema, value)
        case str():
            yield from _by_length(schema, len(value), "minLength", "maxLength", "characters")
            yield from _by_wording(schema, value)
        case list():
            yield from _by_length(schema, len(value), "minItems", "maxItems", "entries")
            if schema.get("uniqueItems") is True and len({_canonical(one) for one in value}) < len(value):
                yield "must not hold the same twice"
        case _:
            yield from _by_length(schema, len(value), "minProperties", "maxProperties", "entries")


def _by_amount(schema: Mapping[str, Any], value: float) -> Iterator[str]:
    for name, fits, words in _LIMITS:
        limit = schema.get(name)
        if isinstance(limit, int | float) and not fits(value, limit):
            yield f"must be {words} {limit}"
    step = schema.get("multipleOf")
    if isinstance(step, int) and step > 0 and value % step:
        yield f"must be a multiple of {step}"


def _by_length(schema: Mapping[str, Any], length: int, least: str, most: str, unit: str) -> Iterator[str]:
    low, high = schema.get(least), schema.get(most)
    if isinstance(low, int) and length < low:
        yield f"must have at least {low} {unit}"
    if isinstance(high, int) and length > high:
        yield f"must have at most {high} {unit}"


def _by_wording(schema: Mapping[str, Any], value: str) -> Iterator[str]:
    pattern = schema.get("pattern")
    try:
        if isinstance(pattern, str) and re.search(pattern, value) is None:
            yield f"must be as {pattern} says"
    except re.error:
        pass  # another language's
    read, words = _FORMATS.get(str(schema.get("format")), (None, ""))
    try:
        if read is not None:
            read(value)
    except ValueError:
        yield f"must be {words}"


def _several(said: object) -> Sequence[Any]:
    return said if isinstance(said, list) else []


def _inside(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _same(one: object, other: object) -> bool:
    return _canonical(one) == _canonical(other)


def _canonical(value: object) -> str:
    """A value as text: to Python, True is 1."""
    return json.dumps(value, sort_keys=True)
