"""What the bulk verbs share: which jobs, the question, the bar, the report, and the way on after Ctrl-C."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.app.jobs import Done, Preview, VerbName
from rowlock.cli import words
from rowlock.cli.filters import Wanted, filter_options, usage
from rowlock.cli.masking import masked
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import INTERRUPTED, at_a_terminal, json_option, nothing_matched, print_json
from rowlock.cli.paging import again
from rowlock.model.filter import Filter

Command = TypeVar("Command", bound=Callable[..., object])

_DID: Mapping[VerbName, str] = {
    "retry": "retried",
    "cancel": "cancelled",
    "delete": "deleted",
    "move": "moved",
    "reprioritise": "reprioritised",
    "run_next": "put first:",
}
# Which jobs a verb passes over, where that may surprise.
_SPARED: Mapping[VerbName, str] = {
    "retry": "cancelled jobs are retried with --state cancelled only, and a job whose key another one holds not at all",
    "delete": "running jobs, workflows that have begun and children of workflows are not deleted; cancel them first",
    "run_next": "jobs that run or wait, and workflows that sleep, cannot be put first",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A bulk verb as it was typed."""

    choice: Choice
    wanted: Wanted
    everything: bool
    yes: bool
    dry_run: bool
    why: str | None
    by: str | None
    before: UUID | None
    as_json: bool


class Act(Protocol):
    """The verb of the library that an order comes down to."""

    def __call__(
        self,
        app: Rowlock,
        asked: Filter,
        *,
        by: str | None,
        why: str | None,
        before: UUID | None,
        track: Callable[[Done], object],
    ) -> Done:
        """Do it."""


def carry_out(order: Order, verb: VerbName, act: Act) -> None:
    """Ask if there is somebody to ask, do it, and say what was done."""
    _check(order)
    with opened(order.choice) as app:
        asked = order.wanted.filter(app)
        expected = None
        if not order.yes:
            expected = _agreed(app, order, verb, asked)
        done = _done(app, order, verb, asked, act, expected=expected)
    if order.as_json:
        print_json(done.to_dict())
    if done.passed_over and verb in _SPARED:
        click.echo(_SPARED[verb], err=True)
    if not done.changed:
        nothing_matched(f"no job was changed{_passed_over(done)}")
    if not order.as_json:
        click.echo(f"{_DID[verb]} {words.count(done.changed, 'job')}{_passed_over(done)}")


def _check(order: Order) -> None:
    if order.wanted.is_everything and not order.everything:
        raise click.UsageError("that would be every job; name some by id or by a filter, or say --all")
    if order.everything and not order.wanted.is_everything:
        raise click.UsageError("give ids and filters, or --all, not both")
    if not (order.yes or order.dry_run or at_a_terminal()):
        raise click.UsageError("there is no terminal to ask at; look with --dry-run, then say --yes")


def _agreed(app: Rowlock, order: Order, verb: VerbName, asked: Filter) -> int | None:
    """Show what it would hit and ask; answers how many jobs that are, if they were counted to the end."""
    with usage():
        preview = app.jobs.preview(verb, asked)
    if order.dry_run:
        _report_only(order, preview)
    if not preview.count:
        nothing_matched(f"no job matches{_passed_over(preview)}")
    _show(preview, stderr=True)
    if not click.confirm(f"{verb.replace('_', ' ')} {_many(preview)}?", err=True):
        click.echo("nothing was changed", err=True)
        raise click.exceptions.Exit(1)
    return None if preview.capped else preview.count + preview.passed_over


def _report_only(order: Order, preview: Preview) -> NoReturn:
    if order.as_json:
        print_json(masked(preview).to_dict())
    if not preview.count:
        nothing_matched(f"no job matches{_passed_over(preview)}")
    if not order.as_json:
        _show(preview, stderr=False)
    raise click.exceptions.Exit(0)


def _show(preview: Preview, *, stderr: bool) -> None:
    from rowlock.cli.tables import facts  # noqa: PLC0415  draws

    samples = (words.line(f"{record.id} {record.state} {record.task}") for record in preview.samples)
    found = {"tasks": _counted(preview.tasks), "states": _counted(preview.states), "such as": "\n".join(samples)}
    title = f"{preview.verb.replace('_', ' ')} would change {_many(preview)}{_passed_over(preview)}"
    facts(found, title=title, stderr=stderr)


def _counted(numbers: Mapping[str, int]) -> str:
    ordered = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{words.line(name)} {number:,}" for name, number in ordered)


def _many(preview: Preview) -> str:
    return f"{preview.count:,} jobs or more" if preview.capped else words.count(preview.count, "job")


def _passed_over(done: Done | Preview) -> str:
    return f"; {words.count(done.passed_over, 'job')} passed over" if done.passed_over else ""


def _done(app: Rowlock, order: Order, verb: VerbName, asked: Filter, act: Act, *, expected: int | None) -> Done:
    from rowlock.cli.bars import bars  # noqa: PLC0415  draws

    latest = Done(verb, before=order.before)
    with bars() as bar:

        def track(done: Done) -> None:
            nonlocal latest
            latest = done
            bar(verb.replace("_", " "), done.changed + done.passed_over, expected)

        try:
            with usage():
                return act(app, asked, by=order.by, why=order.why, before=order.before, track=track)
        except KeyboardInterrupt:
            pass  # said below, when the bar is gone
    return _interrupted(order, latest)


def _interrupted(order: Order, done: Done) -> NoReturn:
    if order.as_json:
        print_json(done.to_dict())
    so_far = f"{_DID[done.verb]} {words.count(done.changed, 'job')}{_passed_over(done)}"
    click.echo(f"interrupted: {so_far}; go on with:\n  {again(done.before)}", err=True)
    raise click.exceptions.Exit(INTERRUPTED)


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


def order_options(command: Command) -> Command:
    """Give a command everything that a bulk verb takes, gathered in its first argument, an Order."""

    @functools.wraps(command)
    def gathered(
        choice: Choice,
        *,
        wanted: Wanted,
        everything: bool,
        yes: bool,
        dry_run: bool,
        why: str | None,
        by: str | None,
        before: UUID | None,
        as_json: bool,
        **rest: object,
    ) -> object:
        order = Order(
            choice=choice,
            wanted=wanted,
            everything=everything,
            yes=yes,
            dry_run=dry_run,
            why=why,
            by=by,
            before=before,
            as_json=as_json,
        )
        return command(order, **rest)

    decorated: Callable[..., object] = app_options(required=False)(debug_option(gathered))
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return filter_options(decorated)  # type: ignore[return-value]  # click keeps the function and adds to it
