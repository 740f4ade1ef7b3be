"""Cron: the slots of an expression in a time zone, against an oracle that walks the clock; and faults, in place."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowlock.errors import InvalidOption
from rowlock.model.schedule.cron import Cron, find_zone
from rowlock.model.schedule.rule import check_rule
from tests.depth import deep_unless

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

# A zone and a day on which its clocks are changed: forward, then back.
EDGES = {
    "Europe/Paris": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "America/St_Johns": ("2026-03-08", "2026-11-01"),
    "America/Havana": ("2026-03-08", "2026-11-01"),  # at midnight: that hour does not come, then comes twice
    "America/Santiago": ("2026-09-06", "2026-04-04"),  # back at 24:00, to 23:00 of the day before
    "Atlantic/Azores": ("2026-03-29", "2026-10-25"),
    "Africa/Casablanca": ("2026-03-22", "2026-02-15"),  # around Ramadan, and the other way round
    "Asia/Beirut": ("2026-03-29", "2026-10-24"),
    "Australia/Lord_Howe": ("2026-10-04", "2026-04-05"),  # by half an hour
    "Pacific/Chatham": ("2026-09-27", "2026-04-05"),  # 12:45 ahead of UTC
    "Asia/Kolkata": ("2026-03-29", "2026-10-25"),  # never changed
    "UTC": ("2028-02-28", "2026-12-30"),  # a leap day, and the end of a year
}

# Set times of the day: once each, whatever the clock does.
FIXED = [
    "0 0 * * *", "30 0 * * *", "59 23 * * *", "30 1 * * *", "0 2 * * *", "15 2 * * *", "30 2 * * *", "45 2 * * *",
    "0 3 * * *", "15 3 * * *", "0,30 2 * * *", "0 2,3 * * *", "15 1,2,3 * * *", "0 0-23 * * *", "10 0-6/2 * * *",
    "0-59 1-3 * * *", "5/20 2 * * *", "30 1 * * SUN", "30 2 * * SAT,SUN", "0 9 * * MON-FRI", "0 12 1 * *",
    "30 1 25 * *", "30 2 29 3 SUN", "0 4 */2 * *", "0 0 L * *", "0 0 LW * *", "30 23 * * SUN#1",
]  # fmt: skip
# As the clock on the wall goes.
WALL = [
    "* * * * *", "*/15 * * * *", "*/15 2 * * *", "*/10 1-3 * * *", "*/20 0 * * *", "*/30 3 * * *", "0 * * * *",
    "30 * * * *", "45 */2 * * *", "15 */3 * * SUN", "*/7 23,0,1 * * *", "* 2 * * SUN", "0 30 2 * * *",
    "0 0,30 1,2 * * *",
]  # fmt: skip


# The oracle: every minute of some days, as a clock of that zone shows it


@cache
def minutes(zone: str, day: str) -> list[tuple[datetime, datetime]]:
    """Each minute from a day before to a day after, in UTC and as the clock shows it; and two hours to begin with."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - DAY - 120 * MINUTE
    clock = ZoneInfo(zone)
    walked = (start + n * MINUTE for n in range(120 + 3 * 1440 + 1))
    return [(at, at.astimezone(clock).replace(tzinfo=None, fold=0)) for at in walked]


def expected(expression: str, zone: str, day: str) -> list[datetime]:
    """The slots after the two hours to begin with, by Debian's rules, taken literally.

    What runs at set times runs for each of them once, at the first minute that does not show less; what runs every so
    often runs whenever the clock shows it.
    """
    fields = expression.split()
    walked = minutes(zone, day)
    first, wanted = walked[120][0], walked[0][1]
    if len(fields) == 6 or "*" in (fields[0][0], fields[1][0]):
        return [at for at, shown in walked if at > first and is_time(fields, shown) and is_day(fields, shown)]
    slots: list[datetime] = []
    for at, shown in walked:
        while wanted <= shown:
            if is_time(fields, wanted) and is_day(fields, wanted) and slots[-1:] != [at]:
                slots.append(at)
            wanted += MINUTE
    return [at for at in slots if at > first]


def is_time(fields: list[str], clock: datetime) -> bool:
    minute, hour = fields[-5:-3]
    return clock.hour in reading(hour, 0, 23) and clock.minute in reading(minute, 0, 59)


@cache
def reading(field: str, least: int, most: int) -> set[int]:
    found = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        start = least if first == "*" else int(first)
        end = int(last) if last else most if step or first == "*" else start
        found |= set(range(start, end + 1, int(step or 1)))
    return found


def is_day(fields: list[str], clock: datetime) -> bool:
    day, month, weekday = fields[-3:]
    assert month in ("*", "3")
    by_date, by_week = is_date(day, clock), is_weekday(weekday, clock)
    chosen = by_date and by_week if day[0] == "*" or weekday[0] == "*" else by_date or by_week
    return chosen and (month == "*" or clock.month == int(month))


def is_date(day: str, clock: datetime) -> bool:
    last = (clock.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    if day == "L":
        return clock.date() == last.date()
    if day == "LW":
        return clock.date() == (last - max(last.weekday() - 4, 0) * DAY).date()
    return clock.day in reading(day, 1, 31)


def is_weekday(weekday: str, clock: datetime) -> bool:
    if weekday == "*":
        return True
    name, _, nth = weekday.partition("#")
    names = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
    if nth:
        return clock.weekday() == names.index(name) and (clock.day - 1) // 7 + 1 == int(nth)
    chosen = set()
    for term in name.split(","):
        first, _, last = term.partition("-")
        chosen |= set(range(names.index(first), names.index(last or first) + 1))
    return clock.weekday() in chosen


def near_a_change(slot: datetime, zone: str) -> bool:
    either_side = (slot + 3 * hours * 60 * MINUTE for hours in (-1, 1))
    return len({at.astimezone(ZoneInfo(zone)).utcoffset() for at in either_side}) > 1


@pytest.mark.parametrize(
    "zone", deep_unless(lambda zone: zone in {"UTC", "Europe/Paris", "Australia/Lord_Howe"}, EDGES)
)
def test_slots_are_those_of_the_clock_on_the_wall_and_of_debian_at_both_changes(zone: str) -> None:
    cases = [(expression, day) for expression in FIXED + WALL for day in EDGES[zone]]
    assert len(cases) * len(EDGES) >= 900

    wrong = []
    for expression, day in cases:
        oracle, cron = expected(expression, zone, day), Cron(expression, zone)
        start, end = minutes(zone, day)[120][0], minutes(zone, day)[-1][0]
        steps = [*pairwise([start, *oracle])]
        steps = [step for n, step in enumerate(steps) if n % 40 == 0 or near_a_change(step[0], zone)]
        if cron.latest(start, end, 10_000) != oracle or any(cron.after(slot) != following for slot, following in steps):
            wrong.append((expression, day))

    assert wrong == []


# Slots


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_a_daily_job_runs_once_on_the_night_that_has_an_hour_twice() -> None:
    cron = Cron("30 1 * * *", "America/New_York")

    slots = cron.latest(at("2026-10-31T00:00Z"), at("2026-11-03T00:00Z"), 10)

    assert slots == [at("2026-10-31T05:30Z"), at("2026-11-01T05:30Z"), at("2026-11-02T06:30Z")]


def test_a_daily_job_runs_when_the_clock_has_jumped_over_its_time() -> None:
    cron = Cron("30 2 * * *", "America/New_York")

    assert cron.after(at("2026-03-08T00:00Z")) == at("2026-03-08T07:00Z")  # 03:00 there
    assert cron.after(at("2026-03-08T07:00Z")) == at("2026-03-09T06:30Z")


def test_a_date_that_a_zone_left_out_is_made_up_for_at_its_end() -> None:
    # Samoa had no 30 December 2011: it went from the eastern side of the date line to the western.
    daily, quarterly = Cron("0 9 * * *", "Pacific/Apia"), Cron("*/15 9 * * *", "Pacific/Apia")
    start, end = at("2011-12-29T00:00-10:00"), at("2012-01-01T00:00+14:00")

    local = [slot.astimezone(ZoneInfo("Pacific/Apia")) for slot in daily.latest(start, end, 10)]

    assert [f"{slot:%d %H:%M}" for slot in local] == ["29 09:00", "31 00:00", "31 09:00"]
    assert len(quarterly.latest(start, end, 10)) == 8


def test_a_leap_day_comes_every_four_years_and_not_in_1900_or_2100() -> None:
    cron = Cron("0 12 29 FEB *")

    assert cron.after(at("2026-01-01T00:00Z")) == at("2028-02-29T12:00Z")
    assert cron.after(at("2096-03-01T00:00Z")) == at("2104-02-29T12:00Z")
    assert cron.latest(at("1895-01-01T00:00Z"), at("1905-01-01T00:00Z"), 5) == [
        at("1896-02-29T12:00Z"),
        at("1904-02-29T12:00Z"),
    ]


def test_seconds_stand_before_minutes_in_six_fields() -> None:
    cron = Cron("*/20 30 9 * * *", "Europe/Paris")

    assert cron.after(at("2026-01-05T08:30:00.5Z")) == at("2026-01-05T08:30:20Z")
    assert cron.after(at("2026-01-05T08:30:40Z")) == at("2026-01-06T08:30:00Z")


@pytest.mark.parametrize(
    ("alias", "expression"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
    ],
)
def test_an_alias_stands_for_its_expression(alias: str, expression: str) -> None:
    now = at("2026-05-06T07:08:09Z")

    assert Cron(alias, "Asia/Kolkata").after(now) == Cron(expression, "Asia/Kolkata").after(now)


def test_sunday_is_0_and_7_and_names_are_read_in_either_case() -> None:
    now = at("2026-05-06T07:08:09Z")

    sundays = {Cron(f"0 9 * * {day}").after(now) for day in ("0", "7", "SUN", "sun")}

    assert sundays == {at("2026-05-10T09:00Z")}


def test_days_of_month_and_of_week_are_alternatives_unless_one_begins_with_a_star() -> None:
    start, end = at("2026-02-01T00:00Z"), at("2026-03-01T00:00Z")

    either, both = Cron("0 0 13 * FRI"), Cron("0 0 */2 * FRI")

    assert [slot.day for slot in either.latest(start, end, 10)] == [6, 13, 20, 27]
    assert [slot.day for slot in both.latest(start, end, 10)] == [13, 27]


@settings(max_examples=60, deadline=None)
@example("30 1 * * *", "Atlantic/Azores", at("2026-10-25T00:45Z"), 7)
@given(
    expression=st.sampled_from([*FIXED, *WALL, "*/7 * * * * *", "59 59 23 31 12 *", "0 0 29 2 *"]),
    zone=st.sampled_from([*EDGES]),
    end=st.datetimes(datetime(1995, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    count=st.integers(1, 20),
)
def test_the_latest_slots_are_the_tail_of_all(expression: str, zone: str, end: datetime, count: int) -> None:
    cron = Cron(expression, zone)

    newest = cron.latest(end - 4000 * DAY, end, count)

    assert len(newest) == count or expression in ("0 0 29 2 *", "59 59 23 31 12 *")
    assert all(slot.tzinfo is UTC for slot in newest)
    assert newest[-1] <= end < cron.after(end)
    assert [cron.after(slot) for slot in newest] == [*newest[1:], cron.after(end)]
    assert cron.latest(newest[0], end, count) == newest[1:]
    assert cron.latest(newest[0] - timedelta(microseconds=1), newest[0], 5) == newest[:1]


def test_a_year_of_seconds_is_not_walked_through() -> None:
    cron, end = Cron("* * * * * *", "Europe/Paris"), at("2026-07-01T12:00:00.25Z")

    newest = cron.latest(end - 365 * DAY, end, 2)

    assert newest == [at("2026-07-01T11:59:59Z"), at("2026-07-01T12:00:00Z")]


def test_there_are_no_slots_in_a_span_that_is_empty_or_turned_round() -> None:
    cron, now = Cron("* * * * *"), at("2026-07-01T12:00Z")

    assert cron.latest(now, now, 5) == []
    assert cron.latest(now, now - DAY, 5) == []
    assert cron.latest(now - DAY, now, 0) == []


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_slots_stop_where_datetimes_do(zone: str) -> None:
    cron, first, last = Cron("0 0 1 * *", zone), datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

    assert cron.after(first).year == 1
    assert 9998 <= cron.latest(first, last, 1)[0].year <= 9999
    with pytest.raises(InvalidOption, match="has no slot in the fifty years after 9999-12-31"):
        cron.after(last)


# Faults


@pytest.mark.parametrize(
    ("expression", "says", "under"),
    [
        ("0 25 * * *", "hour (field 2) '25' is out of 0 to 23", "25"),
        ("60 * * * *", "minute (field 1) '60' is out of 0 to 59", "60"),
        ("60 * * * * *", "second (field 1) '60' is out of 0 to 59", "60"),
        ("0 0 0 * *", "day of month (field 3) '0' is out of 1 to 31", "0 *"),
        ("0 0 1 13 *", "month (field 4) '13' is out of 1 to 12 or JAN to DEC", "13"),
        ("0 0 * * 1,8", "day of week (field 5) '8' is out of 0 to 7 or SUN to SAT", "8"),
        ("0 99-100 * * *", "hour (field 2) '99-100' is out of 0 to 23", "99-100"),
        ("0 22-4 * * *", "hour (field 2) '22-4' runs backwards; write 22-23,0-4", "22-4"),
        ("0 0 * * FRI-MON", "day of week (field 5) 'FRI-MON' runs backwards; write FRI-6,0-MON", "FRI-MON"),
        ("*/0 * * * *", "minute (field 1) '*/0' has the step '0'; use a number from 1 on", "*/0"),
        ("*/five * * * *", "minute (field 1) '*/five' has the step 'FIVE'", "*/five"),
        ("1,,2 * * * *", "minute (field 1) '' is empty; remove a comma", ",2"),
        ("5- * * * *", "minute (field 1) '5-' lacks a value; use 0 to 59", "5-"),
        ("x * * * *", "minute (field 1) 'x' has 'X'; use 0 to 59", "x"),
        ("-5 * * * *", "minute (field 1) '-5' lacks a value; use 0 to 59", "-5"),
        ("0 0 * January *", "month (field 4) 'January' has 'JANUARY'; did you mean JAN?", "January"),
        ("0 0 * * MON,TUES", "day of week (field 5) 'TUES' has 'TUES'; did you mean TUE?", "TUES"),
        ("0 0 * * MON#6", "day of week (field 5) 'MON#6' must end with #1 to #5", "MON#6"),
        ("0 0 ? * MON", "day of month (field 3) '?' is not known here; write *", "?"),
        ("0 0 31 4 *", "day of month (field 3) '31' never comes in month '4'", "31"),
        ("0 0 30 feb *", "day of month (field 3) '30' never comes in month 'feb'", "30"),
        ("0 0 LW * */7", "day of month (field 3) 'LW' never comes in day of week '*/7'", "LW"),
        ("0 9 * *", "4 fields, and there must be 5 (minute hour day-of-month month day-of-week)", None),
        ("0 0 9 * * * 2026", "7 fields, and there must be 5", "2026"),
        ("", "0 fields, and there must be 5", None),
        ("tomorrow", "1 field, and there must be 5", None),
        ("@dayly", "'@dayly' is not an alias; did you mean @daily?", "@dayly"),
    ],
)
def test_a_fault_is_shown_in_its_place(expression: str, says: str, under: str | None) -> None:
    with pytest.raises(InvalidOption) as refused:
        check_rule(expression)

    sentence, shown, marks = str(refused.value).split("\n")
    assert sentence.startswith(f"cron {expression!r}: {says}")
    assert shown == f"    {expression}"
    if under is not None:
        assert shown[marks.index("^") :].startswith(under)
        assert marks.count("^") == len(under.split(" ")[0].lstrip(",")) or under == ",2"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("0 9\n* * *", r"contains '\n'"),
        ("0 9 * * *\x00", r"contains '\x00'"),
        ("0 9 * * *\x1b[2J", r"contains '\x1b'"),
        ("\N{FULLWIDTH DIGIT NINE} * * * *", r"contains '\uff19'"),
        ("0 0 * * fr\N{LATIN SMALL LETTER DOTLESS I}", r"contains '\u0131'"),
        ("*," * 50_000, "has 100,000 characters, and 200 are allowed"),
        ("@reboot", "names no time; give at_boot=True"),
        (5, "rule 5 must be a cron expression, or a timedelta, not int"),
        (None, "rule None must be a cron expression, or a timedelta, not NoneType"),
        (b"0 9 * * *", "must be a cron expression, or a timedelta, not bytes"),
    ],
)
def test_hostile_expressions_are_refused_on_one_line_that_no_terminal_obeys(expression: str, says: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        check_rule(expression)

    assert says in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123459 *,-/#LWMONJA@?", max_size=25))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    said, following = "", None
    try:
        following = check_rule(text).after(at("2026-01-01T00:00Z"))
    except InvalidOption as refused:
        said = str(refused)

    assert (following is None) == said.startswith("cron ")
    assert "is not understood" not in said


def test_a_rule_whose_time_its_zone_always_jumps_over_is_refused() -> None:
    # The second Sunday of March, between 2 and 3 o'clock.
    with pytest.raises(InvalidOption, match="has no slot in the fifty years after 2026-01-01"):
        check_rule("*/5 2 8-14 3 */7", "America/New_York")
    assert check_rule("*/5 2 8-14 3 */7", "Europe/Paris").after(at("2026-01-01T00:00Z")) == at("2026-03-08T01:00Z")


@pytest.mark.parametrize(
    ("tz", "hint"),
    [
        ("Europe/Pari", "did you mean 'Europe/Paris'?"),
        ("europe/paris", "did you mean 'Europe/Paris'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("Europe", "did you mean"),
        ("../../etc/passwd", "use an IANA name"),
        ("/etc/localtime", "use an IANA name"),
        ("posix/Europe/Paris", "did you mean 'Europe/Paris'?"),
        ("right/Europe/Paris", "did you mean 'Europe/Paris'?"),
        ("localtime", "use an IANA name"),
        ("zone.tab", "use an IANA name"),
        ("Europe/Paris\x00", "did you mean 'Europe/Paris'?"),
        ("x" * 10_000, "use an IANA name"),
        ("", "use an IANA name"),
        (" ", "use an IANA name"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_one(tz: str, hint: str) -> None:
    with pytest.raises(InvalidOption, match="is not a time zone that this machine knows") as refused:
        check_rule("0 9 * * *", tz)

    assert hint in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_machine_without_zones_says_what_to_install_and_knows_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowlock.model.schedule.cron.ZoneInfo", zoneinfo.ZoneInfo.no_cache)
    before = zoneinfo.TZPATH
    find_zone.cache_clear()
    zoneinfo.reset_tzpath(to=[])
    try:
        with pytest.raises(InvalidOption, match=r"has no time zone data; run: pip install tzdata"):
            check_rule("0 9 * * *", "Europe/Paris")
        assert check_rule("0 9 * * *", "UTC").after(at("2026-01-01T00:00Z")) == at("2026-01-01T09:00Z")
    finally:
        zoneinfo.reset_tzpath(to=before)
        find_zone.cache_clear()
