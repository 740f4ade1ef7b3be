"""Typed text: times and arguments as people type them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pydantic_core import from_json

from rowlock.errors import InvalidArguments, InvalidOption
from rowlock.model.formatting import is_span, read_span


def read_instant(typed: str) -> datetime:
    """An instant with its time zone: `2026-03-01T08:00Z`."""
    try:
        moment = datetime.fromisoformat(typed.strip())
    except ValueError:
        raise InvalidOption(f"{typed!r} is not a time; write 2026-03-01T08:00Z") from None
    if moment.utcoffset() is None:
        raise InvalidOption(f"{typed!r} has no time zone; write {moment:%Y-%m-%dT%H:%M}Z for UTC, or +02:00")
    return moment


def read_time(typed: str) -> datetime | timedelta:
    """An instant with its time zone, or a length of time, `2h`, which the field counts back or from now on."""
    if is_span(typed):
        return read_span(typed)
    try:
        datetime.fromisoformat(typed.strip())
    except ValueError:
        raise InvalidOption(
            f"{typed!r} is not a time; write a length of time, 2h or 3d, or 2026-03-01T08:00Z"
        ) from None
    return read_instant(typed)


def before(moment: datetime | timedelta, now: datetime) -> datetime:
    """The instant that was meant by a time in the past."""
    try:
        return now - moment if isinstance(moment, timedelta) else moment
    except OverflowError:
        raise InvalidOption("that is longer ago than time itself; write 90s, 15min, 2h, 3d or 1w") from None


def read_argument(typed: str) -> tuple[str, Any]:
    """An argument as NAME=JSON: `n=3`, `n="3"`; what is no JSON, as NaN is none, is a string: `user=ada`."""
    name, equals, text = typed.strip().partition("=")
    if not name or not equals:
        raise InvalidOption(f"{typed!r} has no name and value; write NAME=VALUE, such as user_id=42")
    try:
        return name, from_json(text, allow_inf_nan=False)
    except ValueError:
        return name, text


def read_object(typed: str, what: str) -> dict[str, Any]:
    """Arguments as a JSON object, by name."""
    try:
        found = from_json(typed, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidArguments(f"{what} is no JSON: {error}") from None
    return check_object(found, what)


def check_object(value: object, what: str) -> dict[str, Any]:
    """The same of a value that was sent as JSON."""
    if not isinstance(value, dict):
        raise InvalidArguments(f'{what} must be a JSON object of arguments by name, such as {{"user_id": 42}}')
    return value
