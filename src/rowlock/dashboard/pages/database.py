"""The page /database: database health, what blocks vacuum, locks and storage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Final
from weakref import WeakKeyDictionary

from rowlock.app.app import Rowlock
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.doctor.examine import ainspect
from rowlock.model.checkup import Checkup, Finding, Level
from rowlock.model.stats.stats import ClaimTimes, DatabaseStats
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.doctor.queries import TableNow

TRIED: Final = ("claim index", "claim pages", "share of a core")
"""The doctor's findings that need a trial, or are more exact with one."""
# Where a remedy goes from a command to words, or from words to a command.
_JOINTS: Final = re.compile(
    r"(; (?:then |and )?|, (?:or|for|which|when|and) | when |(?<=: )(?=select )|  \(.*)", re.DOTALL
)
_COMMAND: Final = re.compile(r"(rowlock|select|alter|reindex|drop table|(commit|rollback) prepared|set \w+ =) ")


class DatabaseParams(Params):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its indexes, in bytes; rows are about so many."""

    name: str
    rows: int
    dead: int
    vacuumed_at: datetime | None
    size: int
    indexes_size: int


@dataclass(frozen=True, slots=True)
class PartitionShown:
    """A partition of history or events: rows that expire from `start` until before `end`, then dropped as one."""

    table: str
    name: str
    start: date
    end: date
    rows: int
    size: int
    is_expired: bool


@dataclass(frozen=True, slots=True)
class RemedyPart:
    """A part of a remedy: a command for a shell or for psql, or words."""

    text: str
    is_command: bool


@dataclass(frozen=True, slots=True)
class LastTrial:
    """The last trial of a claim and of a job's whole way, made and undone: when, by whom, and its findings."""

    at: datetime
    by: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class DatabaseShown:
    """The doctor's findings without a trial, and the figures behind them.

    `measured` is the last trial in this process. Figures that could not be read are None, and `unknown` says why.
    """

    at: datetime
    worst: Level
    findings: tuple[Finding, ...]
    measured: LastTrial | None
    version: int  # of the schema
    database: DatabaseStats | None
    claims: ClaimTimes | None
    notifications: float | None  # how full their queue is, as a share
    tables: tuple[Table, ...] | None
    parts: tuple[PartitionShown, ...] | None
    unknown: Mapping[str, str]

    @property
    def ill(self) -> list[Finding]:
        """The findings that are not green, the worst first."""
        found = [finding for finding in self.findings if finding.level != "green"]
        return sorted(found, key=lambda finding: finding.level != "red")

    @property
    def groups(self) -> list[tuple[str, list[Finding]]]:
        """The findings by group."""
        return [(group, list(found)) for group, found in groupby(self.findings, key=lambda finding: finding.group)]

    @property
    def filled(self) -> list[PartitionShown]:
        """The partitions that hold rows, or should be gone."""
        return [part for part in self.parts or () if part.rows or part.is_expired]

    @staticmethod
    def remedy(text: str) -> list[RemedyPart]:
        """A remedy, split into commands and words."""
        found = [piece for piece in _JOINTS.split(text) if piece]
        return [RemedyPart(piece, is_command=_COMMAND.match(piece) is not None) for piece in found]


async def load(context: RequestContext, _params: DatabaseParams) -> DatabaseShown:
    """Read everything that can be read without a trial."""
    facts, checkup = await ainspect(context.reader.database, longest=context.reader.keep.longest)
    return shown(facts, checkup, measured=last_trial(context.app))


def shown(facts: Facts, checkup: Checkup, *, measured: LastTrial | None) -> DatabaseShown:
    """The page's data from these facts."""
    stats = facts.stats
    return DatabaseShown(
        at=checkup.at,
        worst=checkup.worst,
        findings=checkup.findings,
        measured=measured,
        version=facts.version[0],
        database=None if stats is None else stats.database,
        claims=None if stats is None else stats.fleet.claims,
        notifications=facts.notifications,
        tables=None if facts.tables is None else tuple(_tables(facts.tables)),
        parts=None if facts.tables is None or facts.parts is None else tuple(_parts(facts, facts.tables)),
        unknown={**(stats.unknown if stats else {}), **facts.unknown},
    )


def _tables(found: Iterable[TableNow]) -> list[Table]:
    """The tables, the largest first; the parts of history and of events as one each."""
    whole: dict[str, list[TableNow]] = {}
    for table in found:
        name = table.name.rpartition("_")[0] if table.is_part else table.name
        whole.setdefault(name, []).append(table)
    tables = [
        Table(
            name=name,
            rows=sum(max(0, part.live) for part in parts),
            dead=sum(part.dead for part in parts),
            vacuumed_at=max((part.vacuumed_at for part in parts if part.vacuumed_at), default=None),
            size=sum(part.size for part in parts),
            indexes_size=sum(part.indexes_size for part in parts),
        )
        for name, parts in whole.items()
    ]
    return sorted(tables, key=lambda table: -(table.size + table.indexes_size))


def _parts(facts: Facts, tables: Iterable[TableNow]) -> Iterable[PartitionShown]:
    by_name = {table.name: table for table in tables}
    for name, parts in (facts.parts or {}).items():
        for part in parts:
            here = by_name.get(part.name)
            yield PartitionShown(
                table=name,
                name=part.name,
                start=part.start,
                end=part.end,
                rows=max(0, here.live) if here else 0,
                size=here.size + here.indexes_size if here else 0,
                is_expired=facts.today is not None and part.end <= facts.today,
            )


# For the life of this process: a trial costs ten milliseconds, so forgetting one does not matter.
_last: WeakKeyDictionary[Rowlock, LastTrial] = WeakKeyDictionary()


def last_trial(app: Rowlock) -> LastTrial | None:
    """The last trial in this process, if there was one."""
    return _last.get(app)


def remember_trial(app: Rowlock, checkup: Checkup, *, by: str) -> LastTrial:
    """Keep the trial's findings of this checkup as the last trial."""
    found = tuple(finding for finding in checkup.findings if finding.name in TRIED)
    _last[app] = LastTrial(checkup.at, by, found)
    return _last[app]


PAGE = DashboardPage(
    "database",
    "/database",
    DatabaseParams,
    DatabaseShown,
    load,
    says="Database health: checks, what blocks vacuum, locks, and storage.",
    every=timedelta(seconds=10),
    nav="database",
    key="d",
)
