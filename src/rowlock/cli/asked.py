"""What `add` and `edit` of schedules share: the rule and the policies, as they are typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, get_args

import click

from rowlock.cli.calls import arguments_of
from rowlock.cli.filters import gathered, named_values
from rowlock.cli.moments import span
from rowlock.model.names import PRIORITIES
from rowlock.model.schedule.rule import MOST_CAUGHT_UP, CatchUp, Overlap

Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was typed of a schedule; None where nothing was."""

    cron: str | None
    every: timedelta | None
    tz: str | None
    whole: str | None
    named: Mapping[str, object]
    queue: str | None
    priority: int | None
    expires: timedelta | None
    jitter: timedelta | None
    overlap: Overlap | None
    catch_up: CatchUp | None
    at_boot: bool | None
    why: str | None
    by: str | None

    @property
    def rule(self) -> str | timedelta | None:
        """The rule, of one kind or the other."""
        if self.cron is not None and self.every is not None:
            raise click.UsageError("give --cron or --every, not both")
        return self.cron if self.every is None else self.every

    @property
    def arguments(self) -> Mapping[str, object] | None:
        """The arguments, if any were typed."""
        return arguments_of(self.whole, self.named) if self.whole is not None or self.named else None

    def policies(self) -> dict[str, Any]:
        """What was said of slots that meet, were missed, or are to be spread."""
        said = {
            "tz": self.tz,
            "jitter": self.jitter,
            "overlap": self.overlap,
            "catch_up": self.catch_up,
            "at_boot": self.at_boot,
        }
        return {name: value for name, value in said.items() if value is not None}


def _catch_up(_ctx: click.Context, _parameter: click.Parameter, typed: str | None) -> CatchUp | None:
    match typed:
        case None | "none" | "last":
            return typed
        case _ if typed.isascii() and typed.isdecimal() and int(typed[:9]) <= MOST_CAUGHT_UP:
            return int(typed[:9])
        case _:
            raise click.BadParameter(f"{typed!r} is none of: last, none, a number up to {MOST_CAUGHT_UP:,}")


_OPTIONS = [
    click.option("--cron", metavar="RULE", help='"0 9 * * MON-FRI", with seconds "*/10 * * * * *", or @daily.'),
    click.option("--every", type=span, metavar="SPAN", help="Instead of --cron: 30s, 5min, 2h, 1d."),
    click.option("--tz", metavar="ZONE", help="The time zone of --cron: Europe/Paris; else UTC."),
    click.option("--args", "whole", metavar="JSON", help="The arguments as one JSON object: '{\"user_id\": 42}'."),
    click.option(
        "--arg",
        "named",
        multiple=True,
        callback=named_values,
        metavar="NAME=JSON",
        help="One argument; a bare word is a string. May be repeated.",
    ),
    click.option("--queue", metavar="NAME", help="The queue of its jobs; else the task's, or default without --app."),
    click.option(
        "--priority", type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]), metavar="N", help="-4 (last) to 4 (first)."
    ),
    click.option("--expires", type=span, metavar="SPAN", help="Its jobs are not worth starting later than that."),
    click.option("--jitter", type=span, metavar="SPAN", help="Each job runs up to so much later, by chance."),
    click.option(
        "--overlap",
        type=click.Choice(get_args(Overlap)),
        help="While the last job lives: make another, skip the slot, queue one, or replace the job. Else skip.",
    ),
    click.option(
        "--catch-up",
        callback=_catch_up,
        metavar="last|none|N",
        help="Of slots that nobody fired in time: make up for the last, none, or the newest N. Else last.",
    ),
    click.option("--at-boot/--not-at-boot", default=None, help="Also run when a worker starts."),
    click.option("--why", metavar="TEXT", help="A reason, for those who look at it."),
    click.option("--by", metavar="NAME", help="Who does it; else USER@HOST."),
]


def asked_options(command: Command) -> Command:
    """Give a command the options of a schedule, gathered in `asked`."""
    return gathered(command, _OPTIONS, asked=Asked)
