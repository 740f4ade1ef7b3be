"""Whether a value fits a JSON Schema: what pydantic makes of types, and what people write by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import TypeAdapter, ValidationError

from rowlock.model.workflow.json_schema import schema_faults


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Item:
    name: Annotated[str, MinLen(1), MaxLen(5)]
    count: Annotated[int, Ge(1), Le(9)] = 1


@dataclass
class Order:
    items: list[Item]
    size: Size
    due: date | None
    kind: Literal["web", "shop"] = "web"
    notes: dict[str, str] = field(default_factory=dict)


ITEM = {"name": "oar"}


@pytest.mark.parametrize(
    "value",
    [
        {"items": [ITEM], "size": "s", "due": None},
        {"items": [], "size": "l", "due": "2026-03-01", "kind": "shop", "notes": {"a": "b"}},
        {"items": [ITEM | {"count": 9}], "size": "l", "due": None, "unheard": "of"},
    ],
)
def test_what_a_type_takes_fits_its_schema(value: object) -> None:
    adapter = TypeAdapter(Order)

    adapter.validate_python(value)

    assert schema_faults(adapter.json_schema(), value) == ()


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({}, ("items is missing", "size is missing", "due is missing")),
        (7, ("it must be an object",)),
        ({"items": {}, "size": "s", "due": None}, ("items must be a list",)),
        ({"items": [ITEM | {"count": 0}], "size": "s", "due": None}, ("items[0].count must be at least 1",)),
        ({"items": [ITEM | {"count": True}], "size": "s", "due": None}, ("items[0].count must be a whole number",)),
        ({"items": [{"name": ""}], "size": "s", "due": None}, ("items[0].name must have at least 1 characters",)),
        ({"items": [{"name": "galley"}], "size": "s", "due": None}, ("items[0].name must have at most 5 characters",)),
        ({"items": [], "size": "xl", "due": None}, ('size must be one of "s", "l"',)),
        ({"items": [], "size": "s", "due": "soon"}, ("due must be a date, as 2026-03-01",)),
        ({"items": [], "size": "s", "due": None, "notes": {"a": 1}}, ("notes.a must be a text",)),
        ({"items": [], "size": "s", "due": None, "kind": "fax"}, ('kind must be one of "web", "shop"',)),
    ],
)
def test_what_a_type_refuses_is_told_in_words(value: object, faults: tuple[str, ...]) -> None:
    adapter = TypeAdapter(Order)

    with pytest.raises(ValidationError):
        adapter.validate_json(json.dumps(value), strict=True)

    assert schema_faults(adapter.json_schema(), value) == faults


@pytest.mark.parametrize(
    ("schema", "value", "faults"),
    [
        ({"const": 1}, True, ("it must be 1",)),
        ({"enum": [1, "1"]}, 1.5, ('it must be one of 1, "1"',)),
        ({"type": "integer"}, 2.0, ()),
        ({"type": ["string", "null"]}, 1, ("it must be a text or null",)),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 1, ("it must be less than 1",)),
        ({"type": "integer", "multipleOf": 5}, 7, ("it must be a multiple of 5",)),
        ({"type": "string", "pattern": "^a"}, "ba", ("it must be as ^a says",)),
        ({"type": "string", "pattern": "(?<"}, "ba", ()),
        ({"type": "array", "uniqueItems": True}, [1, True], ()),
        ({"type": "array", "uniqueItems": True}, [1, 1], ("it must not hold the same twice",)),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, ["a", 2], ("[1] must be left out",)),
        ({"type": "object", "additionalProperties": False}, {"a": 1}, ("a must be left out",)),
        ({"allOf": [{"minimum": 3}, {"maximum": 5}]}, 6, ("it must be at most 5",)),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, 6, ("it fits nothing of what it may be",)),
        ({"oneOf": [{"minimum": 3}, {"maximum": 5}]}, 4, ("it fits more than one of what it may be",)),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}}, 1, ("it must be null",)),
        ({"$ref": "https://example.com/schema"}, 1, ()),
        (True, 1, ()),
        (False, 1, ("it must be left out",)),
        ("nonsense", 1, ()),
        ({"type": "thing", "enum": "x", "required": 3, "properties": []}, {}, ("it must be thing",)),
    ],
)
def test_schemas_of_other_hands_are_read(schema: Any, value: object, faults: tuple[str, ...]) -> None:  # noqa: ANN401
    assert schema_faults(schema, value) == faults


def test_a_schema_that_stands_for_itself_comes_to_an_end() -> None:
    schema = {"$defs": {"a": {"$ref": "#/$defs/a"}, "tree": {"items": {"$ref": "#/$defs/tree"}, "type": "array"}}}
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]

    assert schema_faults(schema | {"$ref": "#/$defs/a"}, 1) == ()
    assert schema_faults(schema | {"$ref": "#/$defs/tree"}, deep) == ()


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (datetime, "2026-03-01T08:00:00Z", "at eight"),
        (UUID, "01a1e499-3309-73e5-b653-943fd63fec1d", "7"),
        (date, "2026-03-01", "1.3.2026"),
    ],
)
def test_formats_are_checked(kind: type, good: str, bad: str) -> None:
    schema = TypeAdapter(kind).json_schema()

    assert schema_faults(schema, good) == ()
    assert len(schema_faults(schema, bad)) == 1
