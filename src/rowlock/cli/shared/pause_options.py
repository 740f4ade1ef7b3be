"""Pausing and resuming: their options, and what they do to queues and tasks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

import click

from rowlock.app.app import Rowlock
from rowlock.app.pauses import check_end, check_used
from rowlock.cli.shared import text
from rowlock.cli.shared.import_app import load_tasks
from rowlock.cli.shared.options import (
    AppChoice,
    Command,
    add_options,
    app_options,
    debug_option,
    open_app,
    usage_errors,
)
from rowlock.cli.shared.output import json_option, masked, nothing_matched, print_json
from rowlock.cli.shared.times import instant, span
from rowlock.db.errors import is_slow
from rowlock.model.filter import ENDED, LIVE, Filter
from rowlock.model.pause import Pause
from rowlock.model.spec import DEFAULT_QUEUE
from rowlock.store import workers

Kind = Literal["queue", "task"]

_LOOKING: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOptions:
    """What was typed for `pause` or `resume`."""

    choice: AppChoice
    name: str
    duration: timedelta | None = None
    until: datetime | None = None
    why: str | None
    by: str | None
    anyway: bool = False
    as_json: bool


_PAUSE = [
    click.option("--for", "duration", type=span, metavar="SPAN", help="For so long: 90s, 15min, 2h, 3d."),
    click.option("--until", type=instant, metavar="WHEN", help="Until 2026-03-01T08:00Z; else until it is resumed."),
    click.option("--anyway", is_flag=True, help="Also if nobody uses that name yet."),
]


def pause_options(*, pauses: bool) -> Callable[[Command], Command]:
    """Give a command what `pause` takes, or what `resume` takes, gathered in its first argument, a PauseOptions."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def gathered(choice: AppChoice, **given: object) -> object:
            return command(PauseOptions(choice=choice, **given))  # type: ignore[arg-type]  # click has made them

        options = [
            click.argument("name"),
            *(_PAUSE if pauses else ()),
            click.option("--why", metavar="TEXT", help="A reason, for those who look at it."),
            click.option("--by", metavar="NAME", help="Who does it; else USER@HOST."),
            json_option,
        ]
        decorated = app_options(required=False)(debug_option(gathered))
        return add_options(decorated, options)  # type: ignore[return-value]  # click keeps the function and adds to it

    return decorate


def pause_named(typed: PauseOptions, kind: Kind) -> None:
    """Pause a queue or a task, and say until when."""
    if typed.duration is not None and typed.until is not None:
        raise click.UsageError("give --for or --until, not both")
    with open_app(typed.choice) as app, usage_errors():
        check_end(typed.until, typed.duration)
        if not typed.anyway:
            load_tasks(app, typed.choice.app)
            _check_known(app, typed.name, kind)
        noun = app.queues if kind == "queue" else app.tasks
        begun = noun.pause(typed.name, until=typed.until, duration=typed.duration, why=typed.why, by=typed.by)
    if typed.as_json:
        print_json({"pause": masked(begun).to_dict()})
    else:
        click.echo(f"{kind} {text.line(typed.name)} is paused {pause_end(begun, begun.at)}")


def _check_known(app: Rowlock, name: str, kind: Kind) -> None:
    """Refuse a name that nobody uses; if the database is too slow to tell, a pause is needed all the more."""
    declared = {DEFAULT_QUEUE, *(task.spec.queue for task in app.tasks)} if kind == "queue" else app.tasks.names()
    if name in declared:
        return
    with app.read_only(timeout=_LOOKING) as reader:
        has_jobs = _has_jobs(reader, name, kind)
        if has_jobs is False:
            check_used(kind, name, {*declared, *_at_work(reader, kind)}, anyway="--anyway")
    if has_jobs is None:
        click.echo(f"whether anything uses {kind} {text.line(name)} could not be learned in time", err=True)


def _has_jobs(reader: Rowlock, name: str, kind: Kind) -> bool | None:
    """Whether it has jobs, live ones first: there may be a long history. None: PostgreSQL took too long to say."""
    for states in (LIVE, ENDED):
        asked = Filter(state=states, queue=name) if kind == "queue" else Filter(state=states, task=name)
        try:
            page = reader.jobs.list(asked, limit=1, time_limit=_LOOKING)
        except Exception as error:
            if not is_slow(error):
                raise
            return None
        if page.records:
            return True
        if page.next is not None:
            return None
    return False


def _at_work(reader: Rowlock, kind: Kind) -> set[str]:
    """The names that workers know, or that have been counted."""
    stats = reader.stats()
    return {*stats.queues} if kind == "queue" else {*stats.tasks, *reader.database.run(workers.known_tasks())}


def resume_named(typed: PauseOptions, kind: Kind) -> None:
    """Let a queue or a task go on."""
    with open_app(typed.choice) as app, usage_errors():
        noun = app.queues if kind == "queue" else app.tasks
        was_paused = noun.resume(typed.name, why=typed.why, by=typed.by)
    if typed.as_json:
        print_json({"resumed": was_paused})
    if not was_paused:
        nothing_matched(f"{kind} {text.line(typed.name)} was not paused")
    if not typed.as_json:
        click.echo(f"{kind} {text.line(typed.name)} goes on")


def pause_end(pause: Pause, now: datetime) -> str:
    """When a pause ends."""
    if pause.until is None:
        return "until it is resumed"
    return f"until {text.instant(pause.until)} ({text.age(pause.until, now)})"
