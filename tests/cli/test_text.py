"""Facts in words: text that no data can break, spans, ages, and what is typed about time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from rowlock.cli.shared import text, times
from rowlock.model.stats.stats import Rates

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

HOSTILE = [
    "\x1b[2J\x1b[31mred",
    "two\nlines\r\tand a tab",
    "\u202eright to left\u202c",
    "\u2066isolated\u2069 \u200f\u061c",
    "\u2028\u2029 \x85 \x9b31m",
    "\u200bhidden\ufeff",
    "half \ud800",
    "\x00\x07\x08\x7f",
]


@pytest.mark.parametrize(
    ("rate", "said"), [(0.0, ""), (0.005, "0.3/min"), (0.5, "30/min"), (1.25, "1.25/s"), (1234.5, "1,234/s")]
)
def test_a_rate_is_said_in_the_unit_that_says_it_best(rate: float, said: str) -> None:
    assert text.rate(Rates(completed=rate), "completed") == said


@pytest.mark.parametrize("given", HOSTILE, ids=ascii)
def test_a_line_shows_what_would_break_or_repaint_it(given: str) -> None:
    shown = text.line(given)

    assert shown.isprintable()
    assert "\\" in shown
    assert text.line(shown) == shown


def test_several_lines_keep_their_breaks_and_tabs_and_nothing_else() -> None:
    shown = text.lines("a\n\tb\r\x1b[2J\u202e")

    assert shown == "a\n\tb\\r\\x1b[2J\\u202e"


@pytest.mark.parametrize("given", ["plain", "ünïcödé 😀", "日本語", "שלום", "a 'quoted' \"text\" \\ %"])
def test_what_is_harmless_stays_as_it_is(given: str) -> None:
    assert text.line(given) == given


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 ms"),
        (0.0042, "4.2 ms"),
        (1.25, "1.2 s"),
        (45, "45 s"),
        (89, "89 s"),
        (180, "3 min"),
        (7200, "2 h"),
        (86_400 * 2, "2 d"),
        (86_400 * 4000, "4,000 d"),
    ],
)
def test_a_span_is_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert text.span(timedelta(seconds=seconds)) == said
    assert text.span(-timedelta(seconds=seconds)) == said


def test_an_age_says_on_which_side_of_now_it_lies() -> None:
    assert text.age(NOW - timedelta(minutes=3), NOW) == "3 min ago"
    assert text.age(NOW + timedelta(hours=2), NOW) == "in 2 h"
    assert text.age(NOW, NOW) == "now"
    assert text.age(None, NOW) == ""


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("15min", timedelta(minutes=15)),
        ("15m", timedelta(minutes=15)),
        ("1h30min", timedelta(minutes=90)),
        ("1.5 h", timedelta(minutes=90)),
        ("3D", timedelta(days=3)),
        ("1w", timedelta(weeks=1)),
        ("250ms", timedelta(milliseconds=250)),
    ],
)
def test_a_length_of_time_can_be_typed(typed: str, meant: timedelta) -> None:
    assert times.span(typed) == meant
    assert times.past(typed) == meant


@pytest.mark.parametrize("typed", ["", "5", "h", "-2h", "2 fortnights", "1e3s", "999999999w", "2h; drop table", "٣h"])
def test_what_is_no_length_of_time_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="write 90s, 15min, 2h, 3d or 1w"):
        times.span(typed)


@pytest.mark.parametrize("typed", ["2026-03-01T12:00Z", "2026-03-01T14:00+02:00", "2026-03-01 12:00:00.000+00:00"])
def test_an_instant_can_be_typed(typed: str) -> None:
    assert times.instant(typed) == NOW
    assert times.past(typed) == NOW


@pytest.mark.parametrize("typed", ["2026-03-01T12:00", "2026-03-01"])
def test_an_instant_without_a_zone_is_refused_with_one(typed: str) -> None:
    with pytest.raises(click.BadParameter, match=r"has no time zone; write 2026-03-01T..:00Z"):
        times.instant(typed)


def test_spans_are_counted_back_from_a_clock_that_is_asked_only_then() -> None:
    def broken_clock() -> datetime:
        raise AssertionError("nobody needed it")

    relative = times.resolve([timedelta(hours=2), None], lambda: NOW)
    absolute = times.resolve([NOW, None], broken_clock)

    assert relative == [NOW - timedelta(hours=2), None]
    assert absolute == [NOW, None]
    with pytest.raises(click.UsageError, match="longer ago than time itself"):
        times.resolve([timedelta(days=900_000)], lambda: NOW)


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 B"), (999, "999 B"), (8192, "8.2 kB"), (123_456_789, "123 MB"), (5e13, "50.0 TB")]
)
def test_bytes_are_said_in_the_unit_that_fits(number: float, said: str) -> None:
    assert text.size(number) == said
