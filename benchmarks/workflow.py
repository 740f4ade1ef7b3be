"""What it costs to remember: many short workflows, the steps of one, a replay, and those that only wait."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from statistics import median
from uuid import UUID

from benchmarks.arena import Arena
from benchmarks.backlog import CLAIM, FEW, buffers
from benchmarks.limit import BareLoop, Row, claimed_by_nobody
from benchmarks.measure import Broken, Case, Effort, Target, Track, interleave
from benchmarks.tasks import SCHEMA, SIGNAL, app, errand, marathon, memoir
from benchmarks.worker_process import WorkerProcess
from rowlock import Job
from rowlock.db.session import aconnect, arun
from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob
from rowlock.model.spec import Keep
from rowlock.model.workflow.step import StepUpdate
from rowlock.store import settle
from rowlock.store.query import Query, plain_array
from rowlock.store.workflows import steps

_SLOTS = 100
_ERRAND = 5  # steps
_MARATHON = 40
# One workflow is over too soon to be a figure: so many, one after the other, in each round.
_MARATHONS = 10
_MEMOIRS = {"replay 1,000": 1_000, "replay 10,000": 10_000}
_RESULT = "1"

_BARE = f"claim, {_ERRAND} step_records and workflow_settle of {_SLOTS} workflows at a time, in a bare loop"
_COMMITS = f"{_MARATHON} commits: as many step_records of one row, in a bare loop on a connection like the worker's"
_LOADED = "the same steps read by step_load, in a bare loop"

# At the highest priority, so the claim looks there first. Each has the step that it waits in.
_PARKED = """
with parked as (
    insert into {schema}.jobs (
        id, queue, task, priority, attempts, claims, run_at, created_at, args, version, state, waits_for, wakes_at
    )
    select
        (lpad(to_hex(n), 12, '0') || '70008000000000000000')::uuid, 'default', '{task}', 4, 1, 1,
        {schema}.now() + case when n % 2 = 0 then interval '1 day' else interval '0' end, {schema}.now(), '{{}}', 1,
        case when n % 2 = 0 then 'ready' else 'waiting' end, case when n % 2 = 1 then 'signal' end,
        case when n % 2 = 1 then 1 end
    from generate_series(1, {count}) as n
    returning id, state
)
insert into {schema}.steps (job, key, position, kind, state, until, started_at)
select
    id, case state when 'ready' then 'sleep' else '{signal}' end, 1,
    case state when 'ready' then 'sleep' else 'signal' end, 'open',
    case state when 'ready' then {schema}.now() + interval '1 day' end, {schema}.now()
from parked
"""
# A workflow that has taken all its steps but the last, for which it waits.
_REMEMBERED = """
insert into {schema}.steps (job, key, position, kind, state, value, started_at, ended_at)
select
    '{job}', case when n = {count} then '{signal}' when n = 1 then '{step}' else '{step}#' || n end, n,
    case when n = {count} then 'signal' else 'step' end, case when n = {count} then 'open' else 'done' end,
    case when n < {count} then '{value}'::json end, {schema}.now() + n * interval '1 microsecond',
    case when n < {count} then {schema}.now() end
from generate_series(1, {count}) as n
"""
_WAITING = """
update {schema}.jobs set state = 'waiting', waits_for = 'signal', wakes_at = 1, claims = 1 where id = '{job}'
"""


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Every side gets the same table, and a new process or connection."""
    count = effort.sized(full=500, quick=500)
    rounds = effort.repeated(full=7, quick=3)
    figures = interleave(
        {
            "bare": partial(_bare_errands, arena, count),
            "5 steps": partial(_errands, arena, count),
            "commits": partial(_commits, arena),
            "40 steps": partial(_marathons, arena),
        },
        rounds=rounds,
        track=track,
    )
    return [
        Case(
            scenario="workflow",
            case="5 steps",
            unit="workflows/s",
            rowlock_rounds=figures["5 steps"],
            limit_rounds=figures["bare"],
            limit_is=_BARE,
            target=Target(at_least=900, ratio_at_least=0.6),
            details={"workflows": count},
        ),
        Case(
            scenario="workflow",
            case="40 steps",
            unit="ms",
            rowlock_rounds=figures["40 steps"],
            limit_rounds=figures["commits"],
            limit_is=_COMMITS,
            target=Target(ratio_at_most=1.5),
        ),
        *_replays(arena, effort, track),
        _sleeping(arena, effort, track),
    ]


# Many short ones


def _errands(arena: Arena, count: int) -> float:
    arena.fill([errand.bind(n) for n in range(count)])
    with WorkerProcess(slots=_SLOTS, expect=count) as worker:
        ended = worker.wait_drained(arena)
    arena.verify(count, steps=_ERRAND)
    return count / (ended - worker.started)


def _bare_errands(arena: Arena, count: int) -> float:
    arena.fill([errand.bind(n) for n in range(count)])
    with BareLoop(arena.conninfo) as bare:
        began = time.monotonic()
        while rows := bare.claim(_SLOTS):
            for number in range(1, _ERRAND + 1):
                _send(bare, rows, "step_record", _recorded(len(rows), number))
            _send(bare, rows, "workflow_settle", _settled(len(rows)))
        ended = time.monotonic()
    arena.verify(count, steps=_ERRAND)
    return count / (ended - began)


def _send(bare: BareLoop, rows: Sequence[Row], name: str, params: dict[str, str | None]) -> None:
    ids, tokens = plain_array(row[0] for row in rows), plain_array(row[1] for row in rows)
    accepted = bare.send(Query(name, {**params, "ids": ids, "tokens": tokens}, tuple))
    if len(accepted) != len(rows):
        raise Broken(f"{name} of {len(rows)} workflows accepted {len(accepted)}")


@lru_cache(maxsize=64)
def _recorded(count: int, number: int) -> dict[str, str | None]:
    """What a record of one step of so many workflows says beside their ids and tokens: the same each time."""
    nobody = claimed_by_nobody(errand)
    rows = [nobody._replace(token=str(UUID(int=n))) for n in range(count)]  # of one workflow it would be one record
    return dict(steps.record([(row, _step(number)) for row in rows], told={}).params)


@lru_cache(maxsize=8)
def _settled(count: int) -> dict[str, str | None]:
    ended = (claimed_by_nobody(errand), Succeeded(None), Keep().succeeded)
    return dict(settle.settle_workflows([ended] * count, told={}).params)


def _step(number: int) -> StepUpdate:
    """What the worker says of the step of that number."""
    key = "nothing" if number == 1 else f"nothing#{number}"
    return StepUpdate(key, number, "step", "done", json.dumps([number]), value=_RESULT, ago=0.0001)


# One, step by step


def _marathons(arena: Arena) -> float:
    """Milliseconds from the workflow's first line until it is settled: a commit more than it has steps."""
    arena.clear()
    arena.calm()
    with WorkerProcess(slots=_SLOTS) as worker:
        times: list[float] = []
        for number in range(_MARATHONS):
            worker.expect(1)
            marathon.enqueue(number)
            worker.wait_settled()
            [(begun, settled)] = worker.journal().values()
            times.append(settled - begun)
    arena.verify(_MARATHONS, steps=_MARATHON)
    return median(times) * 1000


def _commits(arena: Arena) -> float:
    arena.fill([errand.bind(n) for n in range(_MARATHONS)])
    with BareLoop(arena.conninfo) as bare:
        rows = [ClaimedJob(*row[: len(ClaimedJob._fields)]) for row in bare.claim(_MARATHONS)]
    return median(asyncio.run(_committed(arena.conninfo, rows))) * 1000


async def _committed(conninfo: str, rows: Sequence[ClaimedJob]) -> list[float]:
    times: list[float] = []
    async with await aconnect(conninfo, name="bench limit") as connection:
        for row in rows:
            queries = [steps.record([(row, _step(number))], told={}) for number in range(1, _MARATHON + 1)]
            began = time.monotonic()
            for query in queries:
                if len(await arun(connection.cursor(), query, SCHEMA)) != 1:
                    raise Broken("a step was not accepted")
            times.append(time.monotonic() - began)
    return times


# A replay


def _replays(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Microseconds per step, from the signal's commit until the code goes on; that is read by the journal's `begun`."""
    sides = {name: partial(_replayed, arena, count) for name, count in _MEMOIRS.items()}
    limits = {f"{name}, loaded": partial(_loaded, arena, count) for name, count in _MEMOIRS.items()}
    figures = interleave(sides | limits, rounds=effort.repeated(full=5, quick=3), track=track)
    return [
        Case(
            scenario="workflow",
            case=name,
            unit="µs/step",
            rowlock_rounds=figures[name],
            limit_rounds=figures[f"{name}, loaded"],
            limit_is=_LOADED,
        )
        for name in _MEMOIRS
    ]


def _replayed(arena: Arena, count: int) -> float:
    arena.clear()
    job = _remember(arena, count)
    with WorkerProcess(slots=_SLOTS) as worker:
        worker.expect(1)
        app.signal(job.id, SIGNAL)
        sent = time.monotonic()
        worker.wait_settled()
        [(went_on, _)] = worker.journal().values()
    arena.verify(1, steps=count)
    return (went_on - sent) / count * 1e6


def _loaded(arena: Arena, count: int) -> float:
    arena.clear()
    job = _remember(arena, count)
    with BareLoop(arena.conninfo) as bare:
        query = steps.load([str(job.id)])
        bare.send(steps.load([str(UUID(int=0))]))  # prepares it
        began = time.monotonic()
        found = bare.send(query)
        took = time.monotonic() - began
    if len(found) != count:
        raise Broken(f"{len(found)} of {count} steps were loaded")
    return took / count * 1e6


def _remember(arena: Arena, count: int) -> Job[None]:
    """A workflow that has taken so many steps but one, and waits for a signal."""
    job = memoir.enqueue(count)
    facts = {"schema": SCHEMA, "job": job.id, "count": count, "signal": SIGNAL, "step": "nothing", "value": _RESULT}
    arena.connection.execute(_REMEMBERED.format(**facts))
    arena.connection.execute(_WAITING.format(**facts))
    arena.calm()
    return job


# Those that wait


def _sleeping(arena: Arena, effort: Effort, track: Track) -> Case:
    """Buffers that EXPLAIN counts for a claim, beside as many sleeping workflows and as many that wait for a signal."""
    count = effort.sized(full=200_000, quick=200_000)
    due = max(FEW, count // 2)
    parked = _PARKED.format(schema=SCHEMA, task=errand.name, count=count, signal=SIGNAL)
    figures = interleave(
        {"alone": partial(buffers, arena, None, due=due), "sleeping": partial(buffers, arena, parked, due=due)},
        rounds=effort.repeated(full=3, quick=1),
        track=track,
    )
    return Case(
        scenario="workflow",
        case="sleeping",
        unit="buffers",
        rowlock_rounds=figures["sleeping"],
        limit_rounds=figures["alone"],
        limit_is=f"the same claim of {CLAIM} of {due:,} due jobs, with no workflows there",
        target=Target(ratio_at_least=0.9, ratio_at_most=1.1),
        details={"sleeping": count // 2, "waiting": count - count // 2},
    )
