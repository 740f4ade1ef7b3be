"""Names and options: what they may be, and what is said when they are not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlock.errors import InvalidOption
from rowlock.model import names

settled = settings(derandomize=True, database=None, deadline=None, max_examples=200)

GOOD_NAMES = ["mail", "app.tasks.send", "Grüße", "🎉", "a'b\"c", "%s;drop", "with space", "x" * 200, "ö" * 100, "日本"]
BAD_NAMES = {
    "": "takes 0 bytes",
    "x" * 201: "takes 201 bytes of UTF-8; use 1 to 200",
    "ö" * 101: "takes 202 bytes",
    "a\0b": "contains '\\x00'",
    "a\nb": "contains '\\n'",
    "a\x1b[2J": "contains '\\x1b'",
    "a\u202eb": "contains '\\u202e'",
    "a\u200b": "contains '\\u200b'",
    "\ud800": "lone surrogate",
    " a": "begins or ends with a space",
    "a ": "begins or ends with a space",
    "a\u00a0": "contains '\\xa0'",
}


@pytest.mark.parametrize("check", [names.check_task, names.check_queue])
@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_name_that_can_be_seen_is_returned_as_it_is(check: Callable[[str], str], name: str) -> None:
    assert check(name) == name


@pytest.mark.parametrize("check", [names.check_task, names.check_queue])
@pytest.mark.parametrize(("name", "says"), BAD_NAMES.items(), ids=ascii)
def test_a_name_that_cannot_be_stored_or_seen_is_refused(check: Callable[[str], str], name: str, says: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        check(name)

    assert says in str(caught.value)
    assert str(caught.value).replace("…", "").isascii(), "no terminal obeys an error message"


@pytest.mark.parametrize("name", ["*", "mail,other", "a*", "mail=3"])
def test_a_queue_name_leaves_what_the_command_line_uses_to_it(name: str) -> None:
    with pytest.raises(InvalidOption, match="the command line uses these"):
        names.check_queue(name)
    assert names.check_task(name) == name


@pytest.mark.parametrize("key", ["welcome:42", " any\ntext \u202e ", "x" * 500, "🎉" * 125])
def test_a_key_is_any_text_that_postgresql_can_store(key: str) -> None:
    assert names.check_key(key) == key


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", "use 1 to 500"),
        ("x" * 501, "501 bytes"),
        ("🎉" * 126, "504 bytes"),
        ("a\0", "NUL"),
        ("\udcff", "surrogate"),
    ],
    ids=ascii,
)
def test_a_key_that_postgresql_cannot_store_or_index_is_refused(key: str, says: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        names.check_key(key)

    assert says in str(caught.value)


def test_tags_come_back_as_a_tuple() -> None:
    assert names.check_tags(["a", "b c"]) == ("a", "b c")
    assert names.check_tags(()) == ()
    assert names.check_tags(str(n) for n in range(20)) == tuple(str(n) for n in range(20))


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        ("urgent", "write tags=['urgent']"),
        ([str(n) for n in range(21)], "21 tags are given, and 20 are allowed"),
        (["x" * 101], "use 1 to 100"),
        ([""], "takes 0 bytes"),
        (["a\n"], "cannot be seen"),
        ([3], "must be a str, not int"),
    ],
)
def test_tags_that_are_too_many_too_long_or_no_tags_are_refused(tags: Any, says: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidOption) as caught:
        names.check_tags(tags)

    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["rowlock", "_r2", "a" * 41])
def test_a_schema_name_is_a_plain_identifier(name: str) -> None:
    assert names.check_schema(name) == name


@pytest.mark.parametrize("name", ["", "Rowlock", "2fast", "a-b", "a" * 42, "a\n", 'a";drop', "é", "rowlock\0", 5, None])
def test_any_other_schema_name_is_refused(name: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidOption, match="schema"):
        names.check_schema(name)


@pytest.mark.parametrize("priority", range(-4, 5))
def test_nine_priorities_are_allowed(priority: int) -> None:
    assert names.check_priority(priority) == priority


@pytest.mark.parametrize("priority", [-5, 5, 10**5000, True, 1.0, "1", None], ids=lambda value: type(value).__name__)
def test_any_other_priority_is_refused(priority: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidOption, match="priority="):
        names.check_priority(priority)


def test_attempts_go_from_one_to_a_thousand_million() -> None:
    assert names.check_attempts(1) == 1
    assert names.check_attempts(10**9) == 10**9
    for attempts in (0, -1, 10**9 + 1, True, 1.5):
        with pytest.raises(InvalidOption, match="attempts="):
            names.check_attempts(attempts)  # type: ignore[arg-type]


def test_a_delay_goes_from_zero_to_a_hundred_years() -> None:
    assert names.check_delay(timedelta(0)) == timedelta(0)
    assert names.check_delay(timedelta(days=36500)) == timedelta(days=36500)
    for delay in (timedelta(microseconds=-1), timedelta.max, 5, None):
        with pytest.raises(InvalidOption, match="delay="):
            names.check_delay(delay)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "run_at",
    [
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(1, 1, 2, tzinfo=UTC),
        datetime(9899, 12, 30, tzinfo=UTC),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-23))),
    ],
)
def test_an_aware_instant_is_returned_as_it_is(run_at: datetime) -> None:
    assert names.check_run_at(run_at) is run_at


@pytest.mark.parametrize(
    ("run_at", "says"),
    [
        (datetime(2024, 1, 1), "has no time zone; write datetime(…, tzinfo=UTC)"),  # noqa: DTZ001
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-23))), "out of range"),
        (datetime.max.replace(tzinfo=UTC), "out of range"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=23))), "out of range"),
        ("2024-01-01", "must be a datetime"),
        (1704067200, "must be a datetime"),
        (timedelta(1), "must be a datetime"),
    ],
)
def test_any_other_instant_is_refused(run_at: Any, says: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidOption) as caught:
        names.check_run_at(run_at)

    assert says in str(caught.value)


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


CHECKS = [
    names.check_task,
    names.check_queue,
    names.check_key,
    names.check_tags,
    names.check_schema,
    names.check_priority,
    names.check_attempts,
    names.check_delay,
    names.check_run_at,
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "value", [None, b"mail", Hostile(), 10**5000, [Hostile()], "\ud800\0" * 10**6], ids=lambda v: type(v).__name__
)
def test_no_value_gets_anything_but_an_invalid_option(check: Callable[[Any], object], value: object) -> None:
    with pytest.raises(InvalidOption) as caught:
        check(value)

    assert len(str(caught.value)) < 250


@settled
@given(st.text(max_size=120))
def test_an_accepted_name_is_one_line_that_postgresql_can_store(name: str) -> None:
    try:
        names.check_queue(name)
    except InvalidOption:
        return

    assert 1 <= len(name.encode()) <= 200
    assert name.isprintable()
    assert not {"*", ",", "\0"} & set(name)
