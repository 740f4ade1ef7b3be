"""What travels, how far, and in which form."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import Field

from rowlock.errors import InvalidArguments, PayloadTooLarge
from rowlock.model.payload.arguments import MAX_PAYLOAD, Arguments, encode_untyped
from rowlock.model.payload.round_trip import MAX_DEPTH
from tests.model.baggage import TRAVELLERS, Mood, Size, label, nested, taking, trip


@pytest.mark.parametrize(
    ("annotation", "sent", "received"),
    [
        (str, Mood.GLAD, "glad"),
        (Mood, "glad", Mood.GLAD),
        (int, Size.SMALL, 1),
        (Size, 1, Size.SMALL),
        (list[str], [Mood.GLAD, "other"], ["glad", "other"]),
        (dict[Mood, int], {"glad": 1}, {Mood.GLAD: 1}),
    ],
    ids=label,
)
def test_an_enums_member_and_its_value_stand_for_each_other(annotation: object, sent: object, received: object) -> None:
    came = trip(annotation, sent)

    assert came == received == sent
    assert repr(came) == repr(received)


@pytest.mark.parametrize(("annotation", "value"), TRAVELLERS, ids=label)
def test_a_declared_value_arrives_equal_and_of_the_same_type(annotation: object, value: object) -> None:
    # when
    received = trip(annotation, value)

    # then
    assert received == value
    assert type(received) is type(value)
    assert repr(received) == repr(value) or isinstance(value, (datetime, set, frozenset))


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=9)), ZoneInfo("UTC"), ZoneInfo("Etc/GMT+3")])
def test_an_aware_datetime_keeps_its_clock_and_its_offset(zone: timezone | ZoneInfo) -> None:
    # given
    sent = datetime(2024, 7, 1, 12, 30, tzinfo=zone)

    # when
    received = trip(datetime, sent)

    # then
    assert isinstance(received, datetime)
    assert received.replace(tzinfo=None) == sent.replace(tzinfo=None)
    assert received.utcoffset() == sent.utcoffset()
    assert received == sent


def test_an_int_given_for_a_float_arrives_as_the_equal_float() -> None:
    assert trip(float, 5) == 5.0
    assert trip(dict[str, float], {"a": 2**53}) == {"a": 2.0**53}


def test_64_levels_travel() -> None:
    assert trip(Any, nested(MAX_DEPTH)) == nested(MAX_DEPTH)


def test_parts_shared_a_million_times_over_are_refused_as_too_large_and_at_once() -> None:
    # given: 2⁵⁰ leaves in fifty lists
    value: object = [1]
    for _ in range(50):
        value = [value, value]

    # then
    with pytest.raises(PayloadTooLarge):
        encode_untyped({"value": value}, limit=100_000)


@pytest.mark.parametrize("annotation", [str, Any, str | None, Annotated[str, Field()]], ids=label)
def test_a_payload_may_be_a_mebibyte_of_utf8_and_no_more(annotation: object) -> None:
    # given
    arguments = taking(annotation)
    room = MAX_PAYLOAD - len('{"value":""}')
    fits, too_long = "ö" * (room // 2), "ö" * (room // 2 + 1)

    # when
    text = arguments.encode((fits,), {})

    # then
    assert len(text.encode()) <= MAX_PAYLOAD
    with pytest.raises(PayloadTooLarge, match=r"over the limit of 1,048,576; store the data and pass its id"):
        arguments.encode((too_long,), {})


def test_the_limit_can_be_lowered() -> None:
    # given
    def handler(value: str) -> None: ...

    arguments = Arguments.of(handler, limit=20)

    # then
    assert arguments.encode(("x" * 8,), {}) == '{"value":"xxxxxxxx"}'
    with pytest.raises(PayloadTooLarge):
        arguments.encode(("x" * 9,), {})


def test_untyped_arguments_are_plain_json_values_by_name() -> None:
    # when
    text = encode_untyped({"user_id": 42, "tags": ["a"], "rate": -0.0})

    # then
    assert text == '{"user_id":42,"tags":["a"],"rate":-0.0}'
    assert json.loads(text) == {"user_id": 42, "tags": ["a"], "rate": 0.0}


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"a": Decimal(1)}, "$.a"),
        ({"a": (1,)}, "$.a"),
        ({"a": [{"b": {1: 2}}]}, "$.a[0].b"),
        ({"a": math.nan}, "$.a"),
        ({"a": "\0"}, "$.a"),
        ({"a\0": 1}, "$"),
        ({1: 1}, "$"),
        ({"a": object()}, "$.a"),
    ],
    ids=label,
)
def test_untyped_arguments_pass_the_same_checks(values: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        encode_untyped(values)

    assert caught.value.path == path
