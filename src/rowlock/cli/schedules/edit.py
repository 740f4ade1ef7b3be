"""`rowlock schedules`: add and edit, with the options of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, get_args

import click

from rowlock.app.tasks import Call
from rowlock.cli.schedules import schedule_text
from rowlock.cli.shared import text
from rowlock.cli.shared.import_app import load_tasks
from rowlock.cli.shared.options import (
    AppChoice,
    app_options,
    database_time,
    debug_option,
    gather_options,
    open_app,
    usage_errors,
)
from rowlock.cli.shared.output import (
    EXIT_CODES_OF_READS,
    exit_codes,
    json_option,
    masked,
    print_json,
)
from rowlock.cli.shared.task_arguments import make_call, named_values, parse_arguments
from rowlock.cli.shared.times import span
from rowlock.model.names import PRIORITIES
from rowlock.model.schedule.rule import MOST_CAUGHT_UP, CatchUp, Overlap
from rowlock.model.spec import Options

Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """What was typed of a schedule; None for options that were not."""

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
        """The rule: a cron expression or an interval."""
        if self.cron is not None and self.every is not None:
            raise click.UsageError("give --cron or --every, not both")
        return self.cron if self.every is None else self.every

    @property
    def arguments(self) -> Mapping[str, object] | None:
        """The arguments, if any were typed."""
        return parse_arguments(self.whole, self.named) if self.whole is not None or self.named else None

    def policies(self) -> dict[str, Any]:
        """The options about time zone, jitter, overlap and missed slots that were typed."""
        policies = {
            "tz": self.tz,
            "jitter": self.jitter,
            "overlap": self.overlap,
            "catch_up": self.catch_up,
            "at_boot": self.at_boot,
        }
        return {name: value for name, value in policies.items() if value is not None}


def _catch_up(_ctx: click.Context, _parameter: click.Parameter, typed: str | None) -> CatchUp | None:
    match typed:
        case None | "none" | "last":
            return typed
        case _ if typed.isascii() and typed.isdecimal() and int(typed[:9]) <= MOST_CAUGHT_UP:
            return int(typed[:9])
        case _:
            raise click.BadParameter(f"{typed!r} is none of: last, none, a number up to {MOST_CAUGHT_UP:,}")


_SCHEDULE_OPTIONS = [
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
    click.option("--expires", type=span, metavar="SPAN", help="Cancel its jobs that have not started within it."),
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


def schedule_options(command: Command) -> Command:
    """Give a command the options of a schedule, gathered in `typed`."""
    return gather_options(command, _SCHEDULE_OPTIONS, typed=ScheduleOptions)


@click.command(epilog=EXIT_CODES_OF_READS)
@click.argument("name")
@click.argument("task")
@schedule_options
@click.option("--attempts", type=click.IntRange(1), metavar="N", help="Tries of each job; else as the task says.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="For its jobs; may be repeated.")
@json_option
@app_options(required=False)
@debug_option
def add(
    choice: AppChoice,
    *,
    name: str,
    task: str,
    typed: ScheduleOptions,
    attempts: int | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add a schedule NAME that makes jobs of TASK, and say when it runs first.

    \b
    rowlock schedules add nightly shop.report --cron "0 3 * * *" --tz Europe/Paris
    rowlock schedules add sync shop.sync --every 5min --jitter 30s --arg full=false

    Without --app the task is only a name, and its arguments are taken as they are. With --app the task must be known
    there, and the arguments must fit it.
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    rule, arguments = typed.rule, typed.arguments or {}
    if rule is None:
        raise click.UsageError("when? give --cron or --every")
    with usage_errors():
        options = Options(
            queue=typed.queue, priority=typed.priority, expires=typed.expires, attempts=attempts, tags=tags
        )
    with open_app(choice) as app:
        with usage_errors():
            call = make_call(app, task, arguments, target=choice.app)
            made = Call(call.task, call.args, call.task.spec.allowed(options))
            added = app.schedules.add(name, made, rule, **typed.policies(), by=typed.by, why=typed.why)
        now = database_time(app)
    if as_json:
        print_json({"schedule": masked(added).to_dict()})
    else:
        click.echo(
            f"schedule {text.line(name)} is added; it first runs at {schedule_text.when(added.next_at, added, now)}"
        )


@click.command(epilog=exit_codes("there is no such schedule"))
@click.argument("name")
@schedule_options
@click.option("--reset", is_flag=True, help="Go back to what code declares, and then change what else is given.")
@json_option
@app_options(required=False)
@debug_option
def edit(choice: AppChoice, *, name: str, typed: ScheduleOptions, reset: bool, as_json: bool) -> None:
    """Change a schedule; what is not given stays as it is.

    \b
    rowlock schedules edit nightly --cron "30 4 * * *" --why "the backup runs at 3"
    rowlock schedules edit nightly --queue slow --jitter 10min
    rowlock schedules edit nightly --reset

    Of a schedule that code declares, the change outlasts deploys until --reset. --expires 0s takes that away. With
    --app, new arguments must fit the task.
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    rule, arguments = typed.rule, typed.arguments
    with open_app(choice) as app:
        load_tasks(app, choice.app)
        with usage_errors():
            edited = app.schedules.edit(
                name,
                rule=rule,
                args=arguments,
                queue=typed.queue,
                priority=typed.priority,
                expires=typed.expires,
                **typed.policies(),
                reset=reset,
                by=typed.by,
                why=typed.why,
            )
        now = database_time(app)
    if as_json:
        print_json({"schedule": masked(edited).to_dict()})
    else:
        click.echo(f"schedule {text.line(name)} next runs at {schedule_text.when(edited.next_at, edited, now)}")
