"""Phrases: parts of sentences that several explanations share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from rowlock.model.explain_facts import Situation, StepError
from rowlock.model.formatting import age, count, instant
from rowlock.model.record import JobError, JobRecord
from rowlock.model.redact import redact_text

_MOST_NAMED: Final = 5
_LONGEST_ERROR: Final = 200


def instant_of(moment: datetime, now: datetime) -> str:
    """An instant, and how far away it is."""
    return f"{instant(moment)} ({age(moment, now)})"


def listed(names: Iterable[str], *, most: int = _MOST_NAMED) -> str:
    """Some names, and how many more there are."""
    several = list(dict.fromkeys(names))
    more = f" and {len(several) - most:,} more" if len(several) > most else ""
    return ", ".join(several[:most]) + more


def because(why: str | None) -> str:
    """The end of a sentence with the reason, if one was given."""
    return f": {why}" if why else ""


def command(*words: str | UUID) -> str:
    """A command as it can be typed, whatever the names in it."""
    return f"`rowlock {shlex.join(map(str, words))}`"


def a_worker(queue: str) -> str:
    """The command that starts a worker for a queue; the app is not known here."""
    return command("worker", "--app", "MODULE", "--queues", queue)


def who_died(situation: Situation, record: JobRecord) -> str:
    """The workers that died of a job: how many, and which, as far as events are kept."""
    names = f" ({listed(situation.died)})" if situation.died else ""
    return f"{count(record.crashes, 'worker')} died while they ran it{names}"


def error_of(error: JobError | StepError) -> str:
    """An error in a line: its type, and the first line of its message."""
    said = redact_text(error.message.strip().partition("\n")[0])
    if len(said) > _LONGEST_ERROR:
        said = f"{said[:_LONGEST_ERROR]}…"
    return f"{error.type}: {said}" if said else error.type


def last_error(record: JobRecord) -> str:
    """The end of a sentence with the last error, as far as this role may read it."""
    if record.args is None:
        return " (its errors are not this role's to read)"
    return f": {error_of(record.errors[-1])}" if record.errors else ""
