"""What operators see of jobs: lists, previews of verbs, failures in groups, and what was done."""
# ruff: noqa: A002  a filter is called filter

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar
from uuid import UUID

from rowlock.db.database import Database
from rowlock.errors import InvalidOption
from rowlock.jobs import refuse_in_loop
from rowlock.model.failure_groups import Failures
from rowlock.model.filter import Filter, check_id
from rowlock.model.names import shown
from rowlock.model.results import Cursor, Event, Page, Preview, Start, start_of
from rowlock.model.verb import VerbName, verb_named
from rowlock.store import events as events_store
from rowlock.store.find import pages, windows
from rowlock.store.find.pages import failure_groups
from rowlock.store.query import Conversation

_MOST_LISTED: Final = 1_000
_MOST_COUNTED: Final = 100_000
_EVERY: Final = Filter()

T = TypeVar("T")

Begin = Callable[[bool], Conversation[T]]


class Looking:
    """The part of `app.jobs` that changes nothing."""

    _database: Database

    def list(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | Cursor | str | None = None,
        within: timedelta | None = None,
    ) -> Page:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        Only ended ones are listed by when they ended, latest first: with an ended state, or `ended_after`.
        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        refuse_in_loop("app.jobs.list", "await app.jobs.alist(…)")
        return self._database.join(_page(filter, limit, before, within), atomic=False)

    async def alist(
        self,
        filter: Filter = _EVERY,
        *,
        limit: int = 50,
        before: UUID | Cursor | str | None = None,
        within: timedelta | None = None,
    ) -> Page:
        """The newest jobs that match, live and ended; `before` is the `next` of the page before.

        Only ended ones are listed by when they ended, latest first: with an ended state, or `ended_after`.
        With `within` it looks for about so long and answers what it has found; if there is a `next`, there may be more.
        """
        return await self._database.ajoin(_page(filter, limit, before, within), atomic=False)

    def failures(self, filter: Filter = _EVERY, *, most: int = 10_000, within: timedelta | None = None) -> Failures:
        """Failed jobs in groups, by task and error: what went wrong, how often, and since when.

        Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. It
        counts the `most` that ended last, or, with `within`, as many as about so long allows; `back_to` of what it
        returns says how far that went. `Filter(ended_after=…)` says since when.
        """
        refuse_in_loop("app.jobs.failures", "await app.jobs.afailures(…)")
        return self._database.join(_failures(filter, most, within), atomic=False)

    async def afailures(
        self, filter: Filter = _EVERY, *, most: int = 10_000, within: timedelta | None = None
    ) -> Failures:
        """Failed jobs in groups, by task and error: what went wrong, how often, and since when.

        Errors are alike if their types are, and their messages but for numbers, ids and what stands in quotes. It
        counts the `most` that ended last, or, with `within`, as many as about so long allows; `back_to` of what it
        returns says how far that went. `Filter(ended_after=…)` says since when.
        """
        return await self._database.ajoin(_failures(filter, most, within), atomic=False)

    def preview(self, verb: VerbName, filter: Filter, *, within: timedelta | None = None) -> Preview:
        """What a verb would do now, without doing it; with `within`, as far as about so long shows."""
        refuse_in_loop("app.jobs.preview", "await app.jobs.apreview(…)")
        return self._database.join(_preview(filter, verb, within), atomic=False)

    async def apreview(self, verb: VerbName, filter: Filter, *, within: timedelta | None = None) -> Preview:
        """What a verb would do now, without doing it; with `within`, as far as about so long shows."""
        return await self._database.ajoin(_preview(filter, verb, within), atomic=False)

    def events(
        self, job_id: UUID | str | None = None, *, limit: int = 100, before: Event | None = None
    ) -> tuple[Event, ...]:
        """What was done, newest first: to one job, or at all; `before` is the last event of the answer before."""
        refuse_in_loop("app.jobs.events", "await app.jobs.aevents(…)")
        return self._database.join(partial(_events, checked_id(job_id), check_limit(limit), before), atomic=False)

    async def aevents(
        self, job_id: UUID | str | None = None, *, limit: int = 100, before: Event | None = None
    ) -> tuple[Event, ...]:
        """What was done, newest first: to one job, or at all; `before` is the last event of the answer before."""
        return await self._database.ajoin(
            partial(_events, checked_id(job_id), check_limit(limit), before), atomic=False
        )


def _page(filter: Filter, limit: int, before: Start | str | None, within: timedelta | None) -> Begin[Page]:
    most, start = check_limit(limit), start_of(filter, before)
    return lambda _resend: pages.page(filter, limit=most, before=start, enough=enough_after(within))


def _failures(filter: Filter, most: int, within: timedelta | None) -> Begin[Failures]:
    if filter.states not in (None, {"failed"}):
        raise InvalidOption(f"state={shown(filter.state)}: failures() is about failed jobs; leave the state out")
    if type(most) is not int or not 1 <= most <= _MOST_COUNTED:
        raise InvalidOption(f"most={shown(most)} is out of range; use 1 to {_MOST_COUNTED:,}")
    return lambda _resend: failure_groups(filter, most=most, enough=enough_after(within))


def _preview(filter: Filter, name: VerbName, within: timedelta | None) -> Begin[Preview]:
    verb = verb_named(name)
    return lambda _resend: pages.preview(filter, verb, enough=enough_after(within))


def enough_after(within: timedelta | None) -> windows.Enough:
    """Says, from so long after now on, that it is enough."""
    if within is None:
        return windows.never
    end = time.monotonic() + within.total_seconds()
    return lambda: time.monotonic() >= end


def _events(
    job: UUID | None,
    limit: int,
    before: Event | None,
    _resend: bool,  # noqa: FBT001  as converse calls it
) -> Conversation[tuple[Event, ...]]:
    return tuple((yield events_store.latest(job=None if job is None else str(job), limit=limit, before=before)))


def checked_id(job_id: UUID | str | None) -> UUID | None:
    return None if job_id is None else check_id(job_id)


def check_limit(limit: int) -> int:
    """How many to answer at once."""
    if type(limit) is not int or not 1 <= limit <= _MOST_LISTED:
        raise InvalidOption(f"limit={shown(limit)} is out of range; use 1 to {_MOST_LISTED:,}, and before= for more")
    return limit
