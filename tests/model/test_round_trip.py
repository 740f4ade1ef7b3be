"""What counts as the same: seen apart from pydantic, which happens not to make some of these mistakes today."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest

from rowlock.model.payload.round_trip import difference, unsupported
from tests.model.baggage import Colour, Line, Name, Open, Pair, Point, label

TOKYO = timezone(timedelta(hours=9))
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Stubborn:
    """Equal to everything, or to nothing without raising."""

    def __init__(self, *, equal: bool) -> None:
        self.equal = equal

    def __eq__(self, other: object) -> bool:
        if not self.equal:
            raise RuntimeError(other)
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("sent", "received", "path"),
    [
        (0.0, -0.0, "$"),
        (1, True, "$"),
        (1.0, 1, "$"),
        (2**53 + 1, float(2**53), "$"),
        (Decimal("1.10"), Decimal("1.1"), "$"),
        (Decimal(0), Decimal("-0"), "$"),
        ("x", Name("x"), "$"),
        (NOON, NOON.astimezone(TOKYO), "$"),
        (NOON, NOON.replace(tzinfo=None), "$"),
        (NOON, NOON.replace(fold=1), "$"),
        (time(1, tzinfo=UTC), time(10, tzinfo=TOKYO), "$"),
        ([1, 2], [1], "$"),
        ([1], [1, 2], "$"),
        ((1,), [1], "$"),
        ((1, (2, 3.0)), (1, (2, 3)), "$[1][1]"),
        ({"a": 1}, {}, "$"),
        ({"a": 1}, {"a": 1, "b": 2}, "$"),
        ({1: 1, 2.0: 2}, {1.0: 1, 2: 2}, "$"),
        ({"a": {"b": [0.0]}}, {"a": {"b": [-0.0]}}, "$.a.b[0]"),
        ({1}, {True}, "$"),
        ({1, 2}, {1}, "$"),
        (frozenset({1}), {1}, "$"),
        ({(1, 2.0)}, {(1, 2)}, "$"),
        (Colour.RED, Colour.BLUE, "$"),
        (Pair(1, "a"), (1, "a"), "$"),
        (Pair(1, "a"), Pair(1, "b"), "$[1]"),
        (Point(1, 2), Point(1, 3), "$.y"),
        (Line(sku="a", extra=[(1,)]), Line(sku="a", extra=[[1]]), "$.extra[0]"),
        (Open.model_validate({"a": 1, "b": 2}), Open(a=1), "$"),
        (Stubborn(equal=False), Stubborn(equal=False), "$"),
        ([Stubborn(equal=True)], [1], "$[0]"),
    ],
    ids=label,
)
def test_two_values_that_differ_in_type_or_value_are_told_apart(sent: object, received: object, path: str) -> None:
    # when
    fault = difference(sent, received)

    # then
    assert fault is not None
    assert fault.path == path


def test_an_int_is_the_same_as_its_float_and_not_the_other_way_round() -> None:
    assert difference({"a": [1]}, {"a": [1.0]}) is None
    assert difference({"a": [1.0]}, {"a": [1]}) is not None


def test_the_order_of_a_dict_does_not_matter_and_that_of_a_list_does() -> None:
    assert difference({"a": 1, "b": 2}, {"b": 2, "a": 1}) is None
    assert difference([1, 2], [2, 1]) is not None


def test_a_survey_counts_what_is_certain_to_take_space() -> None:
    # given: five characters in a list take at least six bytes
    assert unsupported(["12345"], limit=6) is None

    # when
    fault = unsupported(["12345"], limit=5)

    # then
    assert fault is not None
    assert fault.too_large
