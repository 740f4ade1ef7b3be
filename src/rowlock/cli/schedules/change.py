"""`rowlock schedules`: pause, resume, run now, remove."""

from __future__ import annotations

import click

from rowlock.cli.schedules import schedule_text
from rowlock.cli.shared import text
from rowlock.cli.shared.options import database_time, open_app, usage_errors
from rowlock.cli.shared.output import (
    exit_codes,
    masked,
    nothing_matched,
    print_json,
)
from rowlock.cli.shared.pause_options import PauseOptions, pause_options


@click.command(epilog=exit_codes("there is no such schedule"))
@pause_options(pauses=True)
def pause(typed: PauseOptions) -> None:
    """Pass over the slots of a schedule. Jobs that it has made go on, and no deploy ends the pause.

    \b
    rowlock schedules pause nightly-report --for 2d --why "the warehouse moves"
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    if typed.duration is not None and typed.until is not None:
        raise click.UsageError("give --for or --until, not both")
    with open_app(typed.choice) as app, usage_errors():
        paused = app.schedules.pause(typed.name, until=typed.until, duration=typed.duration, why=typed.why, by=typed.by)
    if typed.as_json:
        print_json({"schedule": masked(paused).to_dict()})
    else:
        since = paused.paused_at or paused.next_at
        click.echo(f"schedule {text.line(typed.name)} is paused {schedule_text.pause_end(paused, since)}")


@click.command(epilog=exit_codes("it was not paused, or is not there"))
@pause_options(pauses=False)
def resume(typed: PauseOptions) -> None:
    """Resume a paused schedule with its next slot; slots that the pause covered are not made up for."""
    with open_app(typed.choice) as app, usage_errors():
        was_paused = app.schedules.resume(typed.name, why=typed.why, by=typed.by)
        schedule = app.schedules.get(typed.name)
        now = database_time(app)
    if typed.as_json:
        print_json({"resumed": was_paused, "schedule": masked(schedule).to_dict()})
    if not was_paused:
        nothing_matched(f"schedule {text.line(typed.name)} was not paused")
    if not typed.as_json:
        click.echo(f"schedule {text.line(typed.name)} goes on at {schedule_text.when(schedule.next_at, schedule, now)}")


@click.command("run-now", epilog=exit_codes("there is no such schedule"))
@pause_options(pauses=False)
def run_now(typed: PauseOptions) -> None:
    """Make a job of a schedule now, beside its slots, and print its id. It may be paused."""
    with open_app(typed.choice) as app, usage_errors():
        job = app.schedules.run_now(typed.name, why=typed.why, by=typed.by)
    if typed.as_json:
        print_json({"id": str(job.id), "task": job.task, "queue": job.queue})
    else:
        click.echo(job.id)


@click.command(epilog=exit_codes("there is no such schedule"))
@pause_options(pauses=False)
def remove(typed: PauseOptions) -> None:
    """Remove a schedule; the jobs it has made live on.

    Refused while live workers declare it, for they would bring it back: pause it, or take it out of the code first.
    """
    with open_app(typed.choice) as app, usage_errors():
        gone = app.schedules.remove(typed.name, why=typed.why, by=typed.by)
    if typed.as_json:
        print_json({"removed": masked(gone).to_dict()})
        return
    click.echo(f"schedule {text.line(typed.name)} is removed")
    if gone.is_declared:
        click.echo("code has declared it: a worker that starts with such code brings it back", err=True)
