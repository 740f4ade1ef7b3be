"""Bulk verbs: options, preview and question, progress bar, report, and resuming after Ctrl-C."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NoReturn, Protocol
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.app.jobs import Done, Preview, VerbName
from rowlock.cli.shared import text
from rowlock.cli.shared.filters import FilterOptions, filter_options
from rowlock.cli.shared.options import (
    AppChoice,
    Command,
    add_options,
    app_options,
    debug_option,
    open_app,
    usage_errors,
)
from rowlock.cli.shared.output import (
    INTERRUPTED,
    again,
    at_a_terminal,
    json_option,
    masked,
    nothing_matched,
    print_json,
)
from rowlock.model.filter import Filter
from rowlock.model.verb import VERBS


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOptions:
    """What was typed for a bulk verb."""

    choice: AppChoice
    filters: FilterOptions
    everything: bool
    yes: bool
    dry_run: bool
    why: str | None
    by: str | None
    before: UUID | None
    as_json: bool


_OPTIONS = [
    click.option("--all", "everything", is_flag=True, help="Every job; needed when neither ids nor filters are given."),
    click.option("--yes", "-y", is_flag=True, help="Do not ask."),
    click.option("--dry-run", is_flag=True, help="Show what it would change, and change nothing."),
    click.option("--why", metavar="TEXT", help="A reason, for the events of these jobs."),
    click.option("--by", metavar="NAME", help="Who does it, for the events; else USER@HOST."),
    click.option(
        "--before", type=click.UUID, metavar="ID", help="Only jobs older than this one: goes on after an interruption."
    ),
    json_option,
]


def bulk_options(command: Command) -> Command:
    """Give a command everything that a bulk verb takes, gathered in its first argument, a BulkOptions."""

    @functools.wraps(command)
    def gathered(choice: AppChoice, **given: Any) -> object:  # noqa: ANN401  click has made them
        named = {field.name: given.pop(field.name) for field in fields(BulkOptions) if field.name != "choice"}
        return command(BulkOptions(choice=choice, **named), **given)

    decorated = add_options(app_options(required=False)(debug_option(gathered)), _OPTIONS)
    return filter_options(decorated)  # type: ignore[return-value]  # click keeps the function and adds to it


class Operation(Protocol):
    """A bulk operation of `app.jobs`."""

    def __call__(
        self,
        app: Rowlock,
        job_filter: Filter,
        *,
        by: str | None,
        why: str | None,
        before: UUID | None,
        track: Callable[[Done], object],
    ) -> Done:
        """Do it."""


def run_bulk(typed: BulkOptions, verb: VerbName, operation: Operation) -> None:
    """Ask unless told not to, do it with a progress bar, and report what was done."""
    _check(typed)
    with open_app(typed.choice) as app:
        job_filter = Filter.all() if typed.everything else typed.filters.to_filter(app)
        typed.filters.explain_since(VERBS[verb].targets(job_filter))
        expected = None
        if not typed.yes:
            expected = _confirm(app, typed, verb, job_filter)
        done = _run(app, typed, verb, job_filter, operation, expected=expected)
    if typed.as_json:
        print_json(done.to_dict())
    if done.passed_over and VERBS[verb].passes_over:
        click.echo(VERBS[verb].passes_over, err=True)
    if not done.changed:
        nothing_matched(f"no job was changed{_passed_over(done)}")
    if not typed.as_json:
        click.echo(f"{VERBS[verb].done} {text.count(done.changed, 'job')}{_passed_over(done)}")


def _check(typed: BulkOptions) -> None:
    if typed.filters.is_everything and not typed.everything:
        raise click.UsageError("that would be every job; name some by id or by a filter, or say --all")
    if typed.everything and not typed.filters.is_everything:
        raise click.UsageError("give ids and filters, or --all, not both")
    if not (typed.yes or typed.dry_run or at_a_terminal()):
        raise click.UsageError("there is no terminal to ask at; look with --dry-run, then say --yes")


def _confirm(app: Rowlock, typed: BulkOptions, verb: VerbName, job_filter: Filter) -> int | None:
    """Show which jobs it would change, and ask; returns how many, unless the count was cut short."""
    with usage_errors():
        preview = app.jobs.preview(verb, job_filter)
    if typed.dry_run:
        _report_only(typed, preview)
    if not preview.count:
        nothing_matched(f"no job matches{_passed_over(preview)}")
    _show(preview, stderr=True)
    if not click.confirm(f"{VERBS[verb].words} {_many(preview)}?", err=True):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(1)
    return None if preview.capped else preview.count + preview.passed_over


def _report_only(typed: BulkOptions, preview: Preview) -> NoReturn:
    if typed.as_json:
        print_json(masked(preview).to_dict())
    if not preview.count:
        nothing_matched(f"no job matches{_passed_over(preview)}")
    if not typed.as_json:
        _show(preview, stderr=False)
    raise click.exceptions.Exit(0)


def _show(preview: Preview, *, stderr: bool) -> None:
    from rowlock.cli.shared.tables import print_facts  # noqa: PLC0415  draws

    samples = (text.line(f"{record.id} {record.state} {record.task}") for record in preview.samples)
    found = {"tasks": _counted(preview.tasks), "states": _counted(preview.states), "such as": "\n".join(samples)}
    title = f"{VERBS[preview.verb].words} would change {_many(preview)}{_passed_over(preview)}"
    print_facts(found, title=title, stderr=stderr)


def _counted(numbers: Mapping[str, int]) -> str:
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{text.line(name)} {number:,}" for name, number in ordered)


def _many(preview: Preview) -> str:
    return f"{preview.count:,} jobs or more" if preview.capped else text.count(preview.count, "job")


def _passed_over(done: Done | Preview) -> str:
    return f"; {text.count(done.passed_over, 'job')} passed over" if done.passed_over else ""


def _run(
    app: Rowlock, typed: BulkOptions, verb: VerbName, job_filter: Filter, operation: Operation, *, expected: int | None
) -> Done:
    from rowlock.cli.shared.progress_bar import progress_bars  # noqa: PLC0415  draws

    latest = Done(verb, before=typed.before)
    with progress_bars() as bar:

        def track(done: Done) -> None:
            nonlocal latest
            latest = done
            bar(VERBS[verb].words, done.changed + done.passed_over, expected)

        try:
            with usage_errors():
                return operation(app, job_filter, by=typed.by, why=typed.why, before=typed.before, track=track)
        except KeyboardInterrupt:
            pass  # reported below, when the bar is gone
    return _interrupted(typed, latest)


def _interrupted(typed: BulkOptions, done: Done) -> NoReturn:
    if typed.as_json:
        print_json(done.to_dict())
    so_far = f"{VERBS[done.verb].done} {text.count(done.changed, 'job')}{_passed_over(done)}"
    click.echo(f"interrupted: {so_far}; go on with:\n  {again(done.before)}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)
