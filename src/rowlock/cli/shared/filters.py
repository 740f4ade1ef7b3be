"""Filters: the jobs that a command is about, by ids and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.cli.shared.ids import JOB_ID, whole_id
from rowlock.cli.shared.options import Command, database_time, gather_options, usage_errors
from rowlock.cli.shared.task_arguments import named_values
from rowlock.cli.shared.times import past, resolve
from rowlock.model.filter import ENDED, STATES, Filter
from rowlock.model.record import State


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """The ids and filters that were typed; a job must match all of them."""

    ids: tuple[UUID | str, ...]
    state: tuple[State, ...]
    queue: str | None
    task: str | None
    tag: str | None
    key: str | None
    args: Mapping[str, object]
    since: datetime | timedelta | None
    until: datetime | timedelta | None
    ended_since: datetime | timedelta | None
    ended_before: datetime | timedelta | None
    error: str | None
    reason: str | None

    @property
    def is_everything(self) -> bool:
        """Whether nothing was typed, so that every job is meant."""
        return not any(getattr(self, field.name) for field in fields(self))

    def explain_since(self, states: Iterable[State]) -> None:
        """Say what --since means, where jobs in these states may have ended long after they were created."""
        if self.since and not (self.ended_since or self.ended_before) and not ENDED.isdisjoint(states):
            click.echo("--since is when jobs were created; for when they ended, say --ended-since", err=True)

    def to_filter(self, app: Rowlock) -> Filter:
        """The filter; spans such as `2h` are counted back from the database's time."""
        typed = (self.since, self.until, self.ended_since, self.ended_before)
        since, until, ended_after, ended_before = resolve(typed, lambda: database_time(app))
        with usage_errors():
            return Filter(
                state=self.state or None,
                queue=self.queue,
                task=self.task,
                tag=self.tag,
                key=self.key,
                args=self.args or None,
                since=since,
                until=until,
                ended_after=ended_after,
                ended_before=ended_before,
                error=self.error,
                reason=self.reason,
                ids=tuple(whole_id(app, one) for one in self.ids) or None,
            )


_OPTIONS = [
    click.argument("ids", nargs=-1, metavar="[ID]...", type=JOB_ID),
    click.option("--state", multiple=True, type=click.Choice(STATES), help="Only these states; may be repeated."),
    click.option("--queue", metavar="NAME", help="Only this queue."),
    click.option("--task", metavar="NAME", help="Only this task."),
    click.option("--tag", metavar="TAG", help="Only jobs with this tag."),
    click.option("--key", metavar="KEY", help="Only jobs with this key."),
    click.option(
        "--arg",
        "args",
        multiple=True,
        callback=named_values,
        metavar="NAME=JSON",
        help="Only jobs with this argument; a bare word is a string. May be repeated.",
    ),
    click.option(
        "--since", type=past, metavar="WHEN", help="Only jobs created since: 2h (ago), 3d, or 2026-03-01T08:00Z."
    ),
    click.option("--until", type=past, metavar="WHEN", help="Only jobs created before."),
    click.option("--ended-since", type=past, metavar="WHEN", help="Only jobs that ended since: 2h (ago)."),
    click.option("--ended-before", type=past, metavar="WHEN", help="Only jobs that ended before."),
    click.option("--error", metavar="TYPE", help="Only jobs whose last error is of this type: ConnectionError."),
    click.option("--reason", metavar="REASON", help="Only jobs that ended, or wait, for this reason: exhausted."),
]


def filter_options(command: Command) -> Command:
    """Give a command ids and filter options, gathered in `filters`."""
    return gather_options(command, _OPTIONS, filters=FilterOptions)
