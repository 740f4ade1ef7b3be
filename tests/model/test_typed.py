"""Times and arguments as people type them: the command line and the dashboard read them alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from rowlock.cli.shared import task_arguments, times
from rowlock.dashboard import filter_params
from rowlock.errors import InvalidOption
from rowlock.model.typed import before, read_argument, read_time

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_time_is_an_instant_or_how_far_from_it() -> None:
    typed = ("2h", "2026-03-01T10:00Z")

    assert [before(read_time(one), NOW) for one in typed] == [NOW - timedelta(hours=2)] * 2


@pytest.mark.parametrize("typed", ["yesterday", "2026-03-01T08:00", ""])
def test_a_time_that_is_none_is_refused_in_the_same_words_everywhere(typed: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        read_time(typed)
    with pytest.raises(click.BadParameter) as by_option:
        times.past(typed)
    with pytest.raises(ValueError, match="write") as in_form:
        filter_params.JobFilterParams(since=typed)

    assert by_option.value.message == str(refused.value)
    assert str(refused.value) in str(in_form.value)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("n=3", 3),
        ('n="3"', "3"),
        ("n=three", "three"),
        ("n=NaN", "NaN"),
        ("n=-Infinity", "-Infinity"),
        ("n=a=b", "a=b"),
        ("n=" + "[" * 100_000, "[" * 100_000),
    ],
    ids=["number", "text", "word", "NaN", "infinity", "equals", "deep"],
)
def test_an_argument_is_json_or_a_word(typed: str, value: object) -> None:
    command = click.Command("list")

    assert read_argument(typed) == ("n", value)
    assert filter_params.read_arguments(typed) == {"n": value}
    assert task_arguments.named_values(click.Context(command), click.Option(["--arg"]), (typed,)) == {"n": value}


def test_an_argument_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidOption, match="write NAME=VALUE, such as user_id=42"):
        read_argument("=3")
