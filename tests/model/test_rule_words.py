"""The rule of a schedule in words: they say it all, or the expression stands for itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from rowlock.model.schedule.cron import Cron
from rowlock.model.schedule.expression import ALIASES
from rowlock.model.schedule.rule import Every
from rowlock.model.schedule.rule_words import rule_in_words

IN_WORDS = {
    # times that are told one by one
    "0 3 * * *": "every day at 03:00",
    "0 9,17 * * *": "every day at 09:00 and 17:00",
    "0 */6 * * *": "every day at 00:00, 06:00, 12:00 and 18:00",
    "30 0 3 * * *": "every day at 03:00:30",
    # and those that go round
    "* * * * *": "every minute",
    "*/15 * * * *": "every 15 minutes",
    "0,30 * * * *": "every 30 minutes",
    "0-59/5 * * * *": "every 5 minutes",
    "0 * * * *": "every hour, on the hour",
    "5 * * * *": "every hour at :05",
    "5,20,47 * * * *": "every hour at :05, :20 and :47",
    "5-12 * * * *": "every minute from :05 to :12 of every hour",
    "0 */2 * * *": "every 2 hours from 00:00",
    "15 1-23/2 * * *": "every 2 hours from 01:15",
    "0 9-17 * * *": "every hour from 09:00 to 17:00",
    "*/5 9-17 * * 1-5": "every 5 minutes from 09:00 to 17:55, every weekday",
    "* * * * * *": "every second",
    "*/10 * * * * *": "every 10 seconds",
    # days of the week
    "0 3 * * 1-5": "every weekday at 03:00",
    "0 3 * * MON-FRI": "every weekday at 03:00",
    "0 22 * * 0,6": "every Saturday and Sunday at 22:00",
    "0 22 * * 6-7": "every Saturday and Sunday at 22:00",
    "0 9 * * MON": "every Monday at 09:00",
    "0 9 * * 7": "every Sunday at 09:00",
    "0 12 * * 2,4": "every Tuesday and Thursday at 12:00",
    "0 12 * * 1-4": "Monday to Thursday at 12:00",
    "0 12 * * 5-7": "Friday to Sunday at 12:00",
    "*/5 * * * 1": "every 5 minutes, every Monday",
    "0 9 * * 1#1": "on the first Monday of the month at 09:00",
    "0 9 * * 1#1,1#3": "on the first Monday and third Monday of the month at 09:00",
    "0 9 * * 5L": "on the last Friday of the month at 09:00",
    # days of the month
    "30 4 1 * *": "on the 1st of the month at 04:30",
    "0 0 1,15 * *": "on the 1st and 15th of the month at 00:00",
    "0 0 2,3,11,22 * *": "on the 2nd, 3rd, 11th and 22nd of the month at 00:00",
    "0 0 1-7 * *": "on the 1st to 7th of the month at 00:00",
    "0 0 31 * *": "on the 31st of the month (where there is one) at 00:00",
    "0 0 L * *": "on the last day of the month at 00:00",
    "0 0 LW * *": "on the last weekday of the month at 00:00",
    "0 0 15,L * *": "on the 15th and last day of the month at 00:00",
    # months
    "0 0 1 1 *": "every year on 1 January at 00:00",
    "0 0 29 2 *": "every leap year on 29 February at 00:00",
    "0 0 1 */3 *": "on the 1st of January, April, July and October at 00:00",
    "0 0 * 6-8 *": "every day in June to August at 00:00",
    "0 9 * 12 1": "every Monday in December at 09:00",
    "0 0 30 2,4 *": "on the 30th of February and April (where there is one) at 00:00",
    # either of two
    "0 0 13 * 5": "on the 13th of the month and every Friday at 00:00",
    "0 0 1-31 * 1": "every day at 00:00",
}

AS_WRITTEN = [
    "*/7 * * * *",  # and a step of 4 at the end of each hour
    "*/5 9,13 * * *",
    "23 0-20/2 * * *",  # and a gap of four hours
    "0 0 */5 * *",
    "0 0 */2 * 1",  # both must match
    "30 * * * * *",
    "*/10 9 * * * *",
    "1,2,3,5,8,13,21 * * * *",
    "0 9 * * 1,5L",
    "0 9 13 6 5",
]


@pytest.mark.parametrize(("expression", "words"), IN_WORDS.items())
def test_a_rule_is_said_in_words(expression: str, words: str) -> None:
    rule = Cron(expression, "Europe/Paris")

    assert rule_in_words(rule) == f"{words}, Europe/Paris"


@pytest.mark.parametrize("expression", AS_WRITTEN)
def test_where_words_would_lie_the_expression_stands_for_itself(expression: str) -> None:
    assert rule_in_words(Cron(expression)) == f"{expression}, UTC"


@pytest.mark.parametrize(("alias", "expression"), ALIASES.items())
def test_an_alias_is_said_as_what_it_stands_for(alias: str, expression: str) -> None:
    assert rule_in_words(Cron(alias)) == rule_in_words(Cron(expression))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "every second"),
        (90, "every 90 seconds"),
        (900, "every 15 minutes"),
        (3600, "every hour"),
        (5400, "every 90 minutes"),
        (86_400, "every day"),
        (7 * 86_400, "every 7 days"),
    ],
)
def test_an_interval_is_said_in_its_largest_unit(seconds: int, words: str) -> None:
    assert rule_in_words(Every(timedelta(seconds=seconds))) == words


STEP = re.compile(r"every (?:(?P<count>[0-9]+) )?(?P<unit>second|minute)s?")


@pytest.mark.parametrize("expression", [one for one, words in IN_WORDS.items() if STEP.fullmatch(words)])
def test_words_that_say_only_a_step_are_what_the_slots_do(expression: str) -> None:
    said = STEP.fullmatch(IN_WORDS[expression])
    slots, rule = [datetime(2026, 3, 2, tzinfo=UTC)], Cron(expression)

    for _ in range(200):
        slots.append(rule.after(slots[-1]))

    assert said is not None
    step = int(said["count"] or 1) * timedelta(**{f"{said['unit']}s": 1})
    assert {later - earlier for earlier, later in pairwise(slots)} == {step}
