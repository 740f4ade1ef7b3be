"""Trial: claims and jobs, run with the workers' own statements and undone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from rowlock.model.ids import new_id, new_ids
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob, NewJob
from rowlock.store import enqueue as enqueue_store
from rowlock.store import settle as settle_store
from rowlock.store import workers
from rowlock.store.doctor import queries
from rowlock.store.query import Conversation
from rowlock.store.stats.collect import why_unknown
from rowlock.store.stats.counts import TIMEOUT
from rowlock.store.transaction import undone

T = TypeVar("T")

# What is tried out: so many queues, so many jobs of each; then a batch such as a worker of 100 slots asks for, several
# times, because the first one also pays for what PostgreSQL looks up once in a session.
_QUEUES_TRIED = 20
_JOBS_TRIED = 10
BATCH = 100
_ROUNDS = 2
_ALONE = 3


@dataclass(frozen=True, slots=True)
class JobCost:
    """The cost of one job to the server in a trial: to enqueue it alone, to claim and to settle it with others."""

    enqueue: timedelta
    claim: timedelta
    settle: timedelta

    @property
    def whole(self) -> timedelta:
        """All three."""
        return self.enqueue + self.claim + self.settle


@dataclass(slots=True)
class Trial:
    """The result of a trial: a claim from each queue, and a job from enqueue to settle."""

    claims: dict[str, queries.Cost] = field(default_factory=dict)
    job: JobCost | None = None
    unknown: dict[str, str] = field(default_factory=dict)


def try_out(queues: Iterable[str], *, version: str) -> Conversation[Trial]:
    """Claim from queues, and lead jobs of our own from enqueue to end, with the workers' own statements.

    All of it is undone, nothing is committed, and nobody else sees any of it. Jobs of others are held for a
    few milliseconds; workers that claim meanwhile pass over them, and find them at their next claim.
    """
    trial = Trial()
    yield queries.begin_trial(TIMEOUT)
    for queue in list(queues)[:_QUEUES_TRIED]:
        cost = yield from _try("claim", _claim_some(queue, version=version), trial.unknown)
        if cost is None:
            break
        trial.claims[queue] = cost
    trial.job = yield from _try("job", _whole_way(version=version), trial.unknown)
    return trial


def _try(part: str, conversation: Conversation[T], unknown: dict[str, str]) -> Conversation[T | None]:
    try:
        return (yield from undone(conversation))
    except Exception as error:
        state = getattr(error, "sqlstate", None)
        if state is None or state.startswith(("08", "57P")):
            raise
        unknown[part] = why_unknown(state, error)
        return None


def _claim_some(queue: str, *, version: str) -> Conversation[queries.Cost]:
    worker = yield from _enter(version=version)
    costs: list[queries.Cost] = yield queries.claim(queue, limit=_JOBS_TRIED, worker=worker)
    return costs[0]


def _whole_way(*, version: str) -> Conversation[JobCost]:
    worker = yield from _enter(version=version)
    queue = f"rowlock doctor {worker}"  # nobody listens there
    rounds = []
    for _ in range(_ROUNDS):
        new = [NewJob(job_id, queue, "rowlock doctor", "{}", 0, 1) for job_id in new_ids(BATCH)]
        enqueued = []
        for job in new[:_ALONE]:
            enqueued += yield queries.cost_of(enqueue_store.insert_one(job))
        yield enqueue_store.insert(new[_ALONE:])
        [claimed] = yield queries.claim(queue, limit=BATCH, worker=worker)
        held: list[tuple[str, str]] = yield queries.attempts(worker=worker)
        done = [(_attempt(*pair), Succeeded(None), timedelta(days=1)) for pair in held]
        [settled] = yield queries.cost_of(settle_store.settle_jobs(done))
        rounds.append((min(cost.took for cost in enqueued), claimed.took / BATCH, settled.took / BATCH))
    return JobCost(*map(min, zip(*rounds, strict=True)))


def _enter(*, version: str) -> Conversation[str]:
    worker = new_id()
    yield workers.register(
        worker=worker,
        host="rowlock doctor",
        pid=0,
        queues=(),
        slots=1,
        tasks=(),
        schedules=(),
        version=version,
        lease=timedelta(minutes=1),
    )
    return worker


def _attempt(job_id: str, token: str) -> ClaimedJob:
    """As much of a claimed job as its settling needs."""
    return ClaimedJob(job_id, token, "", "{}", "", 0, "", 0, 0, 1, 1, None, False, None, None)
