"""What sessions do, by the shipped statements, and the facts that each is entitled to believe afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from rowlock.model.filter import LIVE
from rowlock.model.ids import new_ids
from rowlock.model.key import Key
from rowlock.model.outcome import Ended, Failed, HandedBack, Retried, Returned, Succeeded
from rowlock.model.row import ClaimedJob, NewJob, Rescued
from rowlock.model.spec import Keep
from rowlock.store import claim as claim_store
from rowlock.store import jobs, operations, pauses, upkeep, workers
from rowlock.store import settle as settle_store
from rowlock.store.claim import PRIORITIES, Lane
from rowlock.store.enqueue import enqueue_all
from rowlock.store.enqueue import sweep_keys as sweep
from rowlock.store.find.windows import Match
from rowlock.store.query import Query
from rowlock.store.schedules import fire as firing
from rowlock.worker.schedule import decide
from tests.faults.interleaving.machine import BEGIN, COMMIT, ROLLBACK, Part

DAY = timedelta(days=1)
FAILURE = '{"type": "ValueError", "message": "no"}'
MOST_CRASHES = 3

SUCCEEDED = Succeeded(None)
FAILED = Failed(FAILURE, "exhausted")
RETRIED = Retried(FAILURE, timedelta(0))
HANDED_BACK = HandedBack()


class Fact(NamedTuple):
    """Something that a session was told, in a statement that was committed."""

    kind: str
    job: str
    token: str | None = None
    spent: bool = False  # an attempt
    row: ClaimedJob | None = None


# Suspects have a claim of their own, one at a time; where something is drained they are claimed as all others.
TAKE_SUSPECTS = "update rowlock.jobs set state = 'ready', waits_for = null, reason = null where waits_for = 'suspect'"


def new(count: int = 1, *, key: str | Key | None = None, task: str = "t", args: str = "{}") -> list[NewJob]:
    """Jobs that nobody has enqueued yet; those that are to be put off, to now."""
    text, meaning = (key.text, key) if isinstance(key, Key) else (key, None)
    delay = timedelta(0) if meaning is not None and meaning.taken == "debounce" else None
    return [
        NewJob(job_id, "default", task, args, 0, 10, delay=delay, key=text, meaning=meaning)
        for job_id in new_ids(count)
    ]


def enqueue(made: Sequence[NewJob], *, resend: bool = False) -> Part:
    """As the app does it, held keys and all."""
    existing = yield from enqueue_all(made, resend=resend)
    return [
        Fact("joined", existing[job.id].id) if job.id in existing else Fact("enqueued", job.id)
        for job in made
    ]  # fmt: skip


def sweep_keys() -> Part:
    """See to keys whose periods are over."""
    yield sweep(10)
    return []


def claim(
    worker: str, limit: int = 10, *, queues: Sequence[str] = ("default",), above: ClaimedJob | None = None
) -> Part:
    """Claim from the bottom of the queues, or of the first one above a floor."""
    lanes = [Lane(queue, priority) for queue in queues for priority in PRIORITIES]
    if above is not None:
        lanes = [Lane(queues[0], above.priority, above.run_at, above.id)]
    rows: list[ClaimedJob] = yield claim_store.claim(lanes=lanes, limit=limit, worker=worker)
    return [Fact("claimed", row.id, row.token, row=row) for row in rows]


def settle(rows: Iterable[ClaimedJob], outcome: Ended = SUCCEEDED) -> Part:
    """End attempts alike."""
    return settle_each((row, outcome) for row in rows)


def settle_each(attempts: Iterable[tuple[ClaimedJob, Ended]]) -> Part:
    """End attempts, each in its own way."""
    batch = list(attempts)
    accepted = yield settle_store.settle_jobs([(row, outcome, DAY) for row, outcome in batch])
    return [
        Fact("settled", row.id, row.token, isinstance(outcome, Failed))
        for row, outcome in batch
        if row.token in accepted
    ]


def give_back(rows: Iterable[ClaimedJob], outcome: Returned = HANDED_BACK) -> Part:
    """Return attempts alike."""
    batch = list(rows)
    accepted = yield settle_store.return_jobs([(row, outcome) for row in batch])
    spent = isinstance(outcome, Retried)
    return [Fact("returned", row.id, row.token, spent) for row in batch if row.token in accepted]


def say_progress(row: ClaimedJob, share: float) -> Part:
    """Write how far an attempt is."""
    accepted = yield jobs.progress([(row, share, None)])
    return [Fact("progressed", row.id, token) for token in accepted]


def rescue(*, lost: bool = False) -> Part:
    """A sweep: the lock by an earlier statement, then the look, the rescue and the burial."""
    yield BEGIN
    [(free,)] = yield "select pg_try_advisory_xact_lock(hashtextextended('rowlock.rescue', 0))"
    rescued: list[Rescued] = []
    if free:
        orphans = yield upkeep.orphans(limit=10, lost=lost)
        if orphans:
            rescued = yield upkeep.rescue(orphans, crashes=MOST_CRASHES, keep=Keep(), actor="sweeper")
        yield workers.bury()
    yield COMMIT
    return [Fact("rescued", job.id, job.token) for job in rescued]


def hand_back(worker: str, known: Iterable[str] = ()) -> Part:
    """Give back what a worker holds without knowing of it, by its tokens."""
    ids = yield workers.hand_back(worker=worker, known=known)
    return [Fact("handed back", job_id) for job_id in ids]


def disown(worker: str, known: Iterable[str] = ()) -> Part:
    """Look what the database says that a worker holds; give back what it does not know of."""
    [held] = yield workers.held(worker=worker)
    unknown = [(job_id, token) for job_id, token in held.attempts if token not in set(known)]
    ids = (yield workers.disown(unknown, worker=worker)) if unknown else []
    return [Fact("handed back", job_id) for job_id in ids]


def pardon(worker: str) -> Part:
    """A worker that was taken for dead is back: it takes back what that cost its jobs."""
    ids = yield upkeep.pardon(worker=worker, since=DAY)
    return [Fact("pardoned", job_id) for job_id in ids]


def renew(worker: str) -> Part:
    """Renew a lease; no fact means that it is lost."""
    renewed = yield workers.renew(worker=worker)
    return [Fact("renewed", worker) for _ in renewed]


def cancel(job_id: str) -> Part:
    """Cancel one job, as the app does it: in a transaction."""
    yield BEGIN
    answer = yield from operations.cancel_one(job_id, actor="somebody", why=None, keep=DAY)
    yield COMMIT
    return [Fact("cancelled" if answer else "too late", job_id)]


def cancel_many(ids: Iterable[str]) -> Part:
    """Cancel what can be locked, as operators do it; how many is all that they are told."""
    found = [_found(job_id) for job_id in ids]
    changed = yield operations.cancel(found, actor="somebody", why=None, states=LIVE, keep=DAY)
    return [Fact("cancelled some", str(sum(changed)))]


def move(job_id: str, queue: str) -> Part:
    """Put a job on another queue."""
    [changed] = yield operations.move([_found(job_id)], actor="somebody", why=None, queue=queue)
    return [Fact("moved", job_id)] if changed else []


def _found(job_id: str) -> Match:
    return Match(job_id, "t", "ready", None, None)


def pause(kind: pauses.Kind, name: str) -> Part:
    """Pause a queue or a task, until somebody says otherwise."""
    yield pauses.pause(kind=kind, name=name, until=None, duration=None, actor="somebody", why=None)
    return [Fact("paused", name)]


def expire(worker: str) -> Part:
    """A worker's lease runs out, by a statement of the test's."""
    yield f"update rowlock.workers set lease = rowlock.now() - interval '1 s' where id = '{worker}'"
    return []


def spoil() -> Part:
    """Every job is not worth starting any more, by a statement of the test's."""
    yield "update rowlock.jobs set expires_at = rowlock.now()"
    return []


def sweep_expired() -> Part:
    """End what has expired and does not run; how many is all that upkeep is told."""
    [ended] = yield upkeep.expire(keep=DAY)
    return [Fact("expired", str(n)) for n in range(ended)]


def schedule(*, at_boot: bool = False, overlap: str = "allow") -> Part:
    """A schedule whose slot has come, by a statement of the test's; its jobs are like any other."""
    yield f"""
        insert into rowlock.schedules (
            name, every, task, args, queue, priority, attempts, jitter, overlap, catch_up, at_boot, next_at, created_at
        ) values (
            's', '1 hour', 't', '{{}}', 'default', 0, 10, '0', '{overlap}', 1, {at_boot},
            date_trunc('second', rowlock.now()) {"+ interval '1 hour'" if at_boot else ""}, rowlock.now()
        )
    """
    return []


def fire(*, at_boot: bool = False, undone: bool = False) -> Part:
    """Look, plan and fire, as workers do it but for the lock that only saves them work."""
    before = datetime.now(UTC) - timedelta(minutes=1) if at_boot else None
    lines = yield firing.due(limit=10, booted_before=before)
    planned = [decide(line.schedule, line.now) for line in lines if line.schedule is not None]
    firings = [one.firing for one in planned if one is not None]
    if not firings:
        return []
    yield BEGIN
    done = yield firing.fire(firings)
    yield ROLLBACK if undone else COMMIT
    if undone:
        return []
    made = [slot for each in firings if each.name in done for slot in each.slots if slot.job]
    return [Fact("enqueued", slot.job) for slot in made if slot.job]


def change(what: str) -> Part:
    """An operator changes the schedule, or removes it: locks it first, as they do."""
    yield BEGIN
    yield "select from rowlock.schedules for update"
    yield f"{what} returning name"
    yield COMMIT
    return [Fact("changed", "s")]


def cut(worker: str, *, to: timedelta) -> Part:
    """A worker's lease ends sooner."""
    yield f"update rowlock.workers set lease = rowlock.now() + '{to.total_seconds()} s' where id = '{worker}'"
    return []


def pass_time(span: timedelta) -> Part:
    """The database's clock goes on."""
    yield (
        "create or replace function rowlock.now() returns timestamptz language sql stable parallel safe"
        f" return statement_timestamp() + interval '{span.total_seconds()} s'"
    )
    return []


def register(worker: str) -> Query[workers.Registered]:
    """Enter a worker whose lease outlasts every schedule in which no time passes."""
    return workers.register(
        worker=worker,
        host="test",
        pid=1,
        queues=["default"],
        slots=1,
        tasks=["t"],
        schedules=(),
        version="0",
        lease=DAY,
    )


def bare(statement: str) -> Part:
    """A statement of the test's."""
    yield statement
    return []


def claimed(facts: Iterable[Fact]) -> list[ClaimedJob]:
    """The rows that these facts say are held."""
    return [fact.row for fact in facts if fact.row is not None]


def together(*parts: Part) -> Part:
    """One after the other, in one session."""
    facts: list[Fact] = []
    for part in parts:
        facts += yield from part
    return facts


Parts = Mapping[str, Part]
