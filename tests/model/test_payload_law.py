"""The law, over generated types and values: the handler receives what was enqueued, or enqueue refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from types import EllipsisType, GenericAlias
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from rowlock.errors import InvalidArguments
from rowlock.model.payload.arguments import Arguments, Result, encode_untyped
from tests.model.baggage import (
    Cat,
    Colour,
    Dog,
    Labels,
    Line,
    Mood,
    Name,
    Open,
    Order,
    Pair,
    Point,
    Point3,
    RushOrder,
    Size,
    returning,
    taking,
)

# The same examples on every run, and no database of them: a failure here must be one for everybody.
law = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


Clock = TypeVar("Clock", datetime, time)


class Place(NamedTuple):
    """An annotation, and values made for it."""

    annotation: Any
    values: st.SearchStrategy[Any]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
FIXED = st.sampled_from(
    [None, UTC, ZoneInfo("UTC"), timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(1) / 2)]
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def unfolded(clock: Clock) -> Clock:
    return clock.replace(fold=0)


LEAVES = [
    Place(None, st.none()),
    Place(bool, st.booleans()),
    Place(int, st.integers()),
    Place(float, NUMBERS),
    Place(str, TEXT),
    Place(bytes, st.binary(max_size=8)),
    Place(datetime, st.datetimes(timezones=FIXED).map(unfolded)),
    Place(date, st.dates()),
    Place(time, st.times().map(unfolded)),
    Place(timedelta, st.timedeltas()),
    Place(UUID, st.uuids()),
    Place(Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    Place(Colour, st.sampled_from(Colour)),
    Place(Size, st.sampled_from(Size)),
    Place(Mood, st.sampled_from(Mood)),
    Place(Literal["a", 2], st.sampled_from(["a", 2])),
    Place(Point, st.builds(Point, st.integers(), st.integers())),
    Place(Pair, st.builds(Pair, st.integers(), TEXT)),
    Place(Line, st.builds(Line, sku=TEXT, extra=st.lists(NUMBERS, max_size=3))),
    Place(Cat | Dog, st.builds(Cat) | st.builds(Dog)),
    Place(int | None, st.integers() | st.none()),
    Place(int | str | float, st.integers() | TEXT | NUMBERS),
    Place(Any, st.recursive(st.none() | st.booleans() | st.integers() | NUMBERS | TEXT, st.lists, max_leaves=5)),
]
KEYS = [place for place in LEAVES if place.annotation in (str, int, UUID, date, Colour, Size, Mood)]
HASHABLE = [place for place in LEAVES if place.annotation not in (Point, Line, Cat | Dog, Any, datetime, time)]


def made(container: type, *of: Place | EllipsisType) -> GenericAlias:
    return GenericAlias(container, tuple(each.annotation if isinstance(each, Place) else each for each in of))


def places(depth: int = 2) -> st.SearchStrategy[Place]:
    leaves = st.sampled_from(LEAVES)
    if depth == 0:
        return leaves
    inner = places(depth - 1)
    return st.one_of(
        leaves,
        inner.map(lambda of: Place(made(list, of), st.lists(of.values, max_size=3))),
        inner.map(lambda of: Place(made(tuple, of, ...), st.lists(of.values, max_size=3).map(tuple))),
        st.tuples(inner, inner).map(lambda of: Place(made(tuple, *of), st.tuples(of[0].values, of[1].values))),
        st.tuples(st.sampled_from(KEYS), inner).map(
            lambda of: Place(made(dict, *of), st.dictionaries(of[0].values, of[1].values, max_size=3))
        ),
        st.sampled_from(HASHABLE).map(lambda of: Place(made(set, of), st.sets(of.values, max_size=3))),
        st.sampled_from(HASHABLE).map(lambda of: Place(made(frozenset, of), st.frozensets(of.values, max_size=3))),
    )


HOSTILE = st.builds(lambda: 10**4300) | st.sampled_from(
    [
        *(math.nan, math.inf, -0.0, 1e22, 2**53 + 1, True, 1, 1.0, "1", None),
        *("\0", "\ud800", "\\u0000", "2024-01-01", "2024-01-01T00:00:00", "PT1S", "red", "glad", ""),
        *(b"\xff", bytearray(b"x"), Name("x"), Size.SMALL, Mood.GLAD, Colour.RED, Decimal("NaN"), Decimal("1.0")),
        *((), (1, "a"), [1, "a"], {1, 2}, frozenset({"a"}), {1: 2}, {"1": 2, 1: 3}, {None: 1}, {"a": 1, "b": 2}),
        *(datetime(2024, 1, 1), datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))),  # noqa: DTZ001
        *(datetime(2024, 1, 1, fold=1), time(1, tzinfo=timezone(timedelta(seconds=30))), date(2024, 1, 1)),  # noqa: DTZ001
        *(Point3(1, 2, 3), Point("x"), Pair(True, 1), RushOrder(lines=[]), Order(lines=[])),  # type: ignore[arg-type]
        *(Line.model_construct(sku=3), Line(sku="a", extra=(1,)), Open.model_validate({"a": 1, "b": (2,)})),
        *(object(), lambda: None, UUID(int=1), timedelta(1), {"a": math.nan}, [[(1,)]]),
    ]
)


@st.composite
def anything(draw: st.DrawFn, of: Place) -> object:
    """A value made for the place, or one made for another, or a hostile one, alone or in containers."""
    value = draw(st.one_of(of.values, HOSTILE, places(1).flatmap(lambda other: other.values)))
    wrap = draw(st.sampled_from(["", "", "list", "tuple", "dict", "model"]))
    match wrap:
        case "list":
            return [value, value]
        case "tuple":
            return (value,)
        case "dict":
            return {"a": value}
        case "model":
            return Line(sku="x", extra=value)
        case _:
            return value


def shown(value: object) -> tuple[type, object]:
    """A value as text that tells apart all that must not be confused: the test's own idea of sameness."""
    detail: object = repr(value)
    match value:
        case Enum():
            detail = value.name
        case float():
            detail = value.hex()
        case datetime() | time():
            detail = value.replace(tzinfo=None).isoformat(), value.fold, str(value.utcoffset())
        case dict():
            detail = {repr(shown(key)): shown(inner) for key, inner in value.items()}
        case list() | tuple():
            detail = [shown(inner) for inner in value]
        case set() | frozenset():
            detail = sorted(repr(shown(inner)) for inner in value)
        case BaseModel():
            detail = {name: shown(inner) for name, inner in value}
        case _ if is_dataclass(value):
            detail = [shown(getattr(value, each.name)) for each in fields(value)]
        case _:
            pass
    return type(value), detail


def as_received(sent: object, received: object) -> object:
    """What was sent, with the changes that are allowed: an int to a float, an enum's member to its value or back."""
    for member, plain in ((sent, received), (received, sent)):
        if isinstance(member, (Size, Mood)) and type(plain) in (str, int) and shown(member.value) == shown(plain):
            return received
    if type(sent) is int and type(received) is float and sent == received:
        return received
    if isinstance(sent, dict) and isinstance(received, dict):
        return {as_received(key, twin(key, received)): as_received(sent[key], received.get(key)) for key in sent}
    if isinstance(sent, (list, tuple)) and isinstance(received, (list, tuple)) and len(sent) == len(received):
        items: list[Any] = [as_received(ours, theirs) for ours, theirs in zip(sent, received, strict=True)]
        return type(sent)(*items) if hasattr(sent, "_fields") else type(sent)(items)
    if isinstance(sent, (set, frozenset)) and isinstance(received, (set, frozenset)):
        return type(sent)(as_received(member, twin(member, received)) for member in sent)
    return sent


def twin(value: object, others: Iterable[object]) -> object:
    return next((other for other in others if other == value), None)


def texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, inner in value.items():
                yield key
                yield from texts_in(inner)
        case list():
            for inner in value:
                yield from texts_in(inner)
        case _:
            return


@law
@given(st.data())
def test_whatever_is_enqueued_arrives_the_same_or_is_refused(data: st.DataObject) -> None:
    # given
    place = data.draw(places())
    sent = data.draw(anything(place))
    arguments = taking(place.annotation)

    # when
    try:
        text = arguments.encode((sent,), {})
    except InvalidArguments:
        return
    args, kwargs = arguments.decode(text)

    # then
    assert args == ()
    assert shown(kwargs["value"]) == shown(as_received(sent, kwargs["value"]))
    # and PostgreSQL takes it, as json and as jsonb
    assert all("\0" not in inner for inner in texts_in(json.loads(text)))


@law
@given(st.data())
def test_a_value_made_for_its_annotation_is_never_refused(data: st.DataObject) -> None:
    # given
    place = data.draw(places())
    sent = data.draw(place.values)
    arguments = taking(place.annotation)

    # when
    _, kwargs = arguments.decode(arguments.encode((sent,), {}))

    # then
    assert shown(kwargs["value"]) == shown(sent)


@law
@given(st.data())
def test_a_result_comes_back_the_same_or_is_refused(data: st.DataObject) -> None:
    # given
    place = data.draw(places(1))
    sent = data.draw(anything(place))
    result = returning(place.annotation)

    # when
    try:
        text = result.encode(sent)
    except InvalidArguments:
        return
    received = result.decode(text)

    # then
    assert shown(received) == shown(as_received(sent, received))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@law
@given(st.dictionaries(st.text(max_size=5), PLAIN, max_size=3))
def test_untyped_arguments_are_read_by_an_unannotated_handler_as_they_were_or_refused(values: dict[str, Any]) -> None:
    # given
    def handler(**values):  # type: ignore[no-untyped-def]
        ...

    # when
    try:
        text = encode_untyped(values)
    except InvalidArguments:
        return

    # then
    assert shown(json.loads(text)) == shown(values)
    assert shown(Arguments.of(handler).decode(text)[1]) == shown(values)
    assert Arguments.of(handler).encode((), values) == text


def scalars(a: int, b: str, c: bool, d: float, e: int | None = None, *, f: str | float = "") -> None: ...  # noqa: FBT001


@law
@given(
    st.tuples(st.integers(), st.text(), st.booleans(), st.floats())
    | st.tuples(*[st.integers() | st.text() | st.booleans() | st.floats() | HOSTILE] * 4),
    st.fixed_dictionaries({}, optional={"e": st.integers() | st.none() | HOSTILE, "f": st.text() | st.floats()}),
)
def test_the_short_way_of_scalars_keeps_the_law_too(args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    # given
    arguments = Arguments.of(scalars)
    sent = dict(zip("abcd", args, strict=True)) | kwargs

    # when
    try:
        text = arguments.encode(args, kwargs)
    except InvalidArguments:
        return
    received = arguments.decode(text)[1]

    # then
    assert shown(received) == shown(as_received(sent, received))


def test_labels_are_told_apart_by_the_test_itself() -> None:
    """The oracle must see what it is there to see."""
    confusable: list[object] = [
        1,
        1.0,
        True,
        "1",
        Size.SMALL,
        -0.0,
        0.0,
        (1,),
        [1],
        {1},
        frozenset({1}),
        {"1": 1},
        {1: 1},
    ]
    confusable += [Decimal("1.0"), Decimal(1), b"1", Mood.GLAD, "glad", Name("1"), Point(1), Point3(1), Labels(a=1)]

    assert len({repr(shown(value)) for value in confusable}) == len(confusable)


def test_results_have_no_short_way_around_the_law() -> None:
    """A scalar of the wrong type must not pass for the right one."""
    for value in (True, "1", 1.0):
        try:
            Result.of(_integer).encode(value)
        except InvalidArguments:
            continue
        raise AssertionError(value)


def _integer() -> int:
    return 1
