"""What is refused, where it is, and what the refusal says."""
# ruff: noqa: DTZ001 - naive datetimes are among it

from __future__ import annotations

import math
from collections import OrderedDict, deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import pytest
from pydantic import Field, SecretStr

from rowlock.errors import InvalidArguments
from rowlock.model.payload.round_trip import MAX_DEPTH
from tests.model.baggage import (
    RETYPED,
    Broken,
    Counted,
    Labels,
    Line,
    Order,
    Point,
    Raw,
    Secretive,
    Trimmed,
    label,
    nested,
    taking,
)

BERLIN = ZoneInfo("Europe/Berlin")


def refusal(annotation: object, value: object) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        taking(annotation).encode((value,), {})
    return caught.value


@pytest.mark.parametrize(("annotation", "value", "path", "advice"), RETYPED, ids=label)
def test_a_value_that_would_change_its_type_is_refused_with_its_place_and_the_way_out(
    annotation: object, value: object, path: str, advice: str
) -> None:
    # when
    error = refusal(annotation, value)

    # then
    assert error.path == path
    assert path in str(error)
    assert advice in str(error)


CHANGED = [
    (Any, {1: "a"}, "$.value", "annotate dict[int, …], or use str keys"),
    (Any, {None: "a"}, "$.value", "key of type NoneType"),
    (dict[int | str, int], {1: 1, "1": 2}, "$.value", "key of type int"),
    (dict[str, Any], {"a": {True: 1}}, "$.value.a", "key of type bool"),
    (dict[tuple[int, int], int], {(1, 2): 1}, '$.value["1,2"]', "array"),
    (set[Any], {Decimal(1)}, "$.value", "member of type Decimal"),
    (set[Any], {(1, 2)}, "$.value[0]", "should be hashable"),
    (Labels, {"a": 1, "b": 2}, "$.value", 'key "b"'),
    (Secretive, Secretive(), "$.value._hidden", "another value"),
    (Trimmed, Trimmed.model_construct(text=" a "), "$.value.text", "another value"),
    (SecretStr, SecretStr("x"), "$.value", "not come back equal"),
    (deque[int], deque([1]), "$.value", "pass a list"),
    (OrderedDict[str, int], OrderedDict(a=1), "$.value", "dict"),
    (datetime, datetime(2024, 1, 1, tzinfo=BERLIN), "$.value", "time zone whose rules"),
    (datetime, datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN), "$.value", "pass it in UTC"),
    (datetime, datetime(2024, 1, 1, fold=1), "$.value", "fold=1"),
    (datetime, datetime(2024, 1, 1, tzinfo=timezone(timedelta(seconds=30))), "$.value", "offset"),
    (time, time(1, tzinfo=BERLIN), "$.value", "time zone whose rules"),
]


@pytest.mark.parametrize(("annotation", "value", "path", "reason"), CHANGED, ids=label)
def test_a_value_that_would_come_back_changed_is_refused(
    annotation: object, value: object, path: str, reason: str
) -> None:
    # given
    if isinstance(value, Secretive):
        value._hidden = 5

    # when
    error = refusal(annotation, value)

    # then
    assert error.path == path
    assert reason in str(error)


MISFITS = [
    (int, "5", "$.value", "should be a valid integer, not str"),
    (int, 5.0, "$.value", "should be a valid integer, not float"),
    (int, None, "$.value", "not NoneType"),
    (date, datetime(2024, 1, 1), "$.value", "date"),
    (Counted, Counted("a"), "$.value.length", "Unexpected keyword argument"),
    (bool, 1, "$.value", "should be a valid boolean, not int"),
    (int | str, 3.5, "$.value", "should be a valid integer, or should be a valid string, not float"),
    (Literal["a"], "b", "$.value", "should be 'a'"),
    (Annotated[int, Field(gt=3)], 2, "$.value", "should be greater than 3"),
    (Order, Order.model_construct(lines=[Line(sku="a"), 3]), "$.value.lines[1]", "should be an object, not int"),
    (Point, Point(x="far"), "$.value.x", "should be a valid integer, not str"),  # type: ignore[arg-type]
    (Point, {"y": 2}, "$.value.x", "is missing"),
    (dict[str, list[int]], {"a": [1, "2"]}, "$.value.a[1]", "should be a valid integer"),
    (Any, object(), "$.value", "cannot become JSON"),
    (dict[str, Any], {"a": [1, object()]}, "$.value.a[1]", "cannot become JSON"),
    (Raw, Raw(data=b"\xff"), "$.value", "val_json_bytes"),
    (Broken, Broken.model_construct(text="a"), "$", "raised KeyError"),
]


@pytest.mark.parametrize(("annotation", "value", "path", "reason"), MISFITS, ids=label)
def test_a_value_that_does_not_fit_its_annotation_is_refused_and_never_coerced(
    annotation: object, value: object, path: str, reason: str
) -> None:
    # when
    error = refusal(annotation, value)

    # then
    assert error.path == path
    assert reason in str(error)


def endless() -> list[object]:
    value: list[object] = [1]
    value.append({"again": value})
    return value


HOSTILE = [
    ("a\x00b", "", "contains NUL"),
    ({"a\x00": 1}, "", "has a key that contains NUL"),
    ("\ud800", "", "lone surrogate"),
    ({"\udcff": 1}, "", "lone surrogate"),
    (math.nan, "", "not a finite number"),
    ([1, {"a": -math.inf}], "[1].a", "not a finite number"),
    ([Decimal("NaN")], "[0]", "not a finite number"),
    (Decimal("sNaN"), "", "not a finite number"),
    (10**4300, "", "over 4,300 digits"),
    (-(10**5000), "", "over 4,300 digits"),
    (endless(), "[1].again[1]", "contains itself"),
    (nested(MAX_DEPTH + 1), "[0]" * MAX_DEPTH, "more than 64 levels"),
    ((n for n in [1, 2]), "", "only once"),
]


@pytest.mark.parametrize(("value", "path", "reason"), HOSTILE, ids=[reason for *_, reason in HOSTILE])
def test_what_no_json_can_carry_is_refused_where_it_is(value: object, path: str, reason: str) -> None:
    # when
    error = refusal(Any, value)

    # then
    assert error.path.startswith(f"$.value{path}")
    assert reason in str(error)


@pytest.mark.parametrize("annotation", [str, list[str], dict[str, str], Line, Any], ids=label)
def test_a_nul_is_refused_wherever_the_annotation_puts_it(annotation: object) -> None:
    # given
    values: dict[object, object] = {list[str]: ["\0"], dict[str, str]: {"a": "\0"}, Line: Line(sku="\0")}

    # when
    error = refusal(annotation, values.get(annotation, "\0"))

    # then
    assert "NUL" in str(error)


def test_a_nul_made_by_a_serialiser_is_refused() -> None:
    error = refusal(Raw, Raw(data=b"\0"))

    assert error.path == "$.value.data"
    assert "NUL" in str(error)


def test_a_refusal_never_shows_the_value() -> None:
    # given: secrets of several kinds
    for annotation, value in [(int, "hunter2"), (Order, {"lines": "hunter2"}), (Any, ("hunter2",)), (str, "hunter2\0")]:
        # when
        error = refusal(annotation, value)

        # then
        assert "hunter2" not in str(error)
        assert error.__suppress_context__ or error.__context__ is None
