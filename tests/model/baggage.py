"""What the tests of payloads send: types of every kind, values that travel, and values that would change on the way."""
# ruff: noqa: DTZ001, DTZ901 - naive datetimes are among them

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, computed_field, field_validator
from typing_extensions import TypedDict

from rowlock.model.payload.arguments import Arguments, Result


def label(value: object) -> str:
    """A value as part of a test's name, the same in every process."""
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


UserId = NewType("UserId", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1


class Mood(enum.StrEnum):
    GLAD = "glad"


class Name(str):
    __slots__ = ()


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Point3(Point):
    z: int = 0


@dataclass
class Blob:
    data: bytes


@dataclass
class Counted:
    name: str
    length: int = field(default=0, init=False)


class Pair(NamedTuple):
    left: int
    right: str = ""


class Labels(TypedDict):
    a: int


class Line(BaseModel):
    sku: str
    extra: Any = None


class Order(BaseModel):
    lines: list[Line]
    note: str | None = None


class RushOrder(Order):
    by: int = 0


class Aliased(BaseModel):
    """Reads one name and writes another, which would not meet if aliases were used."""

    inner: int = Field(validation_alias="in", serialization_alias="out")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.inner


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Secretive(BaseModel):
    _hidden: int = PrivateAttr(default=0)


class Raw(BaseModel):
    data: bytes


class Trimmed(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def trim(cls, text: str) -> str:
        return text.strip()


class Broken(BaseModel):
    text: str

    @field_validator("text")
    @classmethod
    def trip(cls, text: str) -> str:
        raise KeyError(text)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Twin(BaseModel):
    kind: Literal["cat"] = "cat"


def taking(annotation: object) -> Arguments:
    """The arguments of a function `handler(value: annotation)`."""

    def handler(value: object) -> None: ...

    handler.__annotations__["value"] = annotation
    handler.__qualname__ = "handler"
    return Arguments.of(handler)


def trip(annotation: object, value: object) -> object:
    """What the handler receives."""
    arguments = taking(annotation)
    _, kwargs = arguments.decode(arguments.encode((value,), {}))
    return kwargs["value"]


def returning(annotation: object) -> Result:
    def handler() -> object: ...

    handler.__annotations__["return"] = annotation
    handler.__qualname__ = "handler"
    return Result.of(handler)


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


TRAVELLERS: list[tuple[object, object]] = [
    (None, None),
    (bool, True),
    (int, -(2**80)),
    (int, 10**4299),
    (float, -0.0),
    (float, 1e22),
    (float, 5e-324),
    (float, 1.7976931348623157e308),
    (int | float, 1),
    (int | float, 1.0),
    (bool | int, 1),
    (bool | int, True),
    (str, 'naïve 🎉 \\u0000 " \u2028 \x7f'),
    (str | None, None),
    (UserId, 7),
    (list, [1, [2.0, "3"], None]),
    (list[int], []),
    (dict, {"a": {"b": [True]}}),
    (dict[int, str], {1: "one", -2: "minus two"}),
    (dict[Colour, int], {Colour.RED: 1}),
    (dict[date, int], {date(2024, 2, 29): 1}),
    (dict[UUID, int], {UUID(int=5): 1}),
    (tuple[int, ...], (1, 2)),
    (tuple[int, str], (1, "a")),
    (list[tuple[int, ...]], [(1,), ()]),
    (set[str], {"a", "b"}),
    (frozenset[tuple[int, int]], frozenset({(1, 2)})),
    (bytes, bytes(range(256))),
    (dict[str, list[bytes]], {"a": [b"\xff\x00"]}),
    (datetime, datetime(2024, 1, 1, 12, 30, 15, 123456)),
    (datetime, datetime(2024, 1, 1, tzinfo=UTC)),
    (datetime, datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC"))),
    (datetime, datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-5, minutes=-30)))),
    (datetime, datetime.min),
    (datetime, datetime.max),
    (datetime | None, datetime(2024, 1, 1)),
    (datetime | str, datetime(2024, 1, 1)),
    (date, date(1, 1, 1)),
    (date | datetime, date(2024, 1, 1)),
    (date | datetime, datetime(2024, 1, 1)),
    (time, time(23, 59, 59, 999999)),
    (timedelta, timedelta(microseconds=-1)),
    (timedelta, timedelta.max),
    (timedelta, timedelta.min),
    (UUID, UUID(int=2**128 - 1)),
    (Decimal, Decimal("1.10")),
    (Decimal, Decimal("-0")),
    (Decimal, Decimal("1E+500")),
    (Colour, Colour.BLUE),
    (Size, Size.SMALL),
    (Mood, Mood.GLAD),
    (Literal["a", 1], 1),
    (Path, Path("/tmp/a")),  # noqa: S108 - a name, not a file
    (Point, Point(1, 2)),
    (Point3, Point3(1, 2, 3)),
    (list[Blob], [Blob(b"\xff")]),
    (Pair, Pair(1, "a")),
    (Labels, {"a": 1}),
    (Order, Order(lines=[Line(sku="a", extra=[1, {"b": None}])])),
    (RushOrder, RushOrder(lines=[], by=3)),
    (Aliased, Aliased.model_validate({"in": 3})),
    (Open, Open.model_validate({"a": 1, "b": [2]})),
    (Raw, Raw(data=b"plain")),
    (Trimmed, Trimmed(text="a")),
    (Cat | Dog, Dog()),
    (Annotated[int, Field(gt=3)], 4),
    (Any, {"a": [1, 2.5, "x", None, True]}),
    (object, "x"),
]


RETYPED: list[tuple[object, object, str, str]] = [
    (int, True, "$.value", "bool"),
    (str, Name("x"), "$.value", "annotate it as Name"),
    (Literal[1], True, "$.value", "bool"),
    (Any, (1, 2), "$.value", "annotate it as tuple[…], or pass list"),
    (Any, {1}, "$.value", "annotate it as set[…]"),
    (Any, Decimal(1), "$.value", "annotate it as Decimal"),
    (Any, datetime(2024, 1, 1), "$.value", "annotate it as datetime"),
    (Any, b"x", "$.value", "annotate it as bytes"),
    (Any, Colour.RED, "$.value", "annotate it as Colour"),
    (Any, Point(1), "$.value", "annotate it as Point"),
    (Any, UUID(int=1), "$.value", "annotate it as UUID"),
    (Any, bytearray(b"x"), "$.value", "bytearray"),
    (list[int], (1, 2), "$.value", "annotate it as tuple[…]"),
    (dict[str, Any], {"a": [1, (2,)]}, "$.value.a[1]", "annotate it as tuple[…]"),
    (dict[str, Any], {"a key": {"b": (2,)}}, '$.value["a key"].b', "tuple"),
    (datetime | str, "2024-01-01T00:00:00", "$.value", "annotate it as str"),
    (list[int] | set[int], {1}, "$.value", "annotate it as set[…]"),
    (Order, RushOrder(lines=[]), "$.value", "annotate it as RushOrder"),
    (list[Point], [Point(1), Point3(1)], "$.value[1]", "annotate it as Point3"),
    (Order, Order(lines=[Line(sku="a"), Line(sku="b", extra=(1,))]), "$.value.lines[1].extra", "tuple"),
    (Cat | Twin, Twin(), "$.value", "annotate it as Twin"),
    (Pair, (1, "a"), "$.value", "annotate it as tuple[…], or pass Pair"),
    (Point, {"x": 1, "y": 2}, "$.value", "or pass Point"),
    (float, 2**53 + 1, "$.value", "annotate it as int"),
    (float, True, "$.value", "bool"),
]
