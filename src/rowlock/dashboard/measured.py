"""What was tried out on a database last: a claim, and a job's whole way, made and undone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from rowlock.app.app import Rowlock
from rowlock.model.checkup import Checkup, Finding

TRIED: Final = ("claim index", "claim pages", "share of a core")
"""The doctor's lines that need a trial, or are nearer to the truth by one."""


@dataclass(frozen=True, slots=True)
class Measured:
    """When it was tried, by whom, and what came of it."""

    at: datetime
    by: str
    findings: tuple[Finding, ...]


# For as long as this process lives: a trial costs ten milliseconds, so it is no matter to forget one.
_last: WeakKeyDictionary[Rowlock, Measured] = WeakKeyDictionary()


def last_measured(app: Rowlock) -> Measured | None:
    """What was tried last here, if anything was."""
    return _last.get(app)


def remember(app: Rowlock, checkup: Checkup, *, by: str) -> Measured:
    """What this checkup says of it, from now on."""
    found = tuple(finding for finding in checkup.findings if finding.name in TRIED)
    _last[app] = Measured(checkup.at, by, found)
    return _last[app]
