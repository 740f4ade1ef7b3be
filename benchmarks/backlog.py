"""Whether a claim costs more when there is much that it must not take: jobs for later, or jobs long ended."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from benchmarks.arena import Arena
from benchmarks.limit import BareLoop
from benchmarks.measure import Broken, Case, Effort, Target, Track, interleave
from benchmarks.tasks import SCHEMA, noop
from rowlock.store.query import statement

CLAIM = 100
_CLAIMS = 10
# A B-tree of 100,000 jobs is as deep as one of a million, so what differs is what a claim walks over. One of a few is a
# level less deep, which every job claimed pays for once: the case with few due jobs shows it.
_DUE = 100_000
FEW = CLAIM * _CLAIMS

# At the highest priority, so the claim looks there first. Ids are in order, as a client's are.
_DELAYED = """
insert into {schema}.jobs (id, queue, task, priority, attempts, run_at, created_at, args)
select
    (lpad(to_hex(n), 12, '0') || '70008000000000000000')::uuid, 'default', '{task}', 4, 10,
    {schema}.now() + interval '1 day' + n * interval '1 millisecond', {schema}.now(), '{{}}'
from generate_series(1, {count}) as n
"""
_ENDED = """
insert into {schema}.history (
    id, queue, task, state, priority, failures, crashes, claims, attempts,
    run_at, created_at, started_at, ended_at, expires_on, args
)
select
    (lpad(to_hex(n), 12, '0') || '70008000000000000000')::uuid, 'default', '{task}', 'succeeded', 0, 0, 0, 1, 10,
    {schema}.now(), {schema}.now(), {schema}.now(), {schema}.now(),
    ({schema}.now() at time zone 'UTC')::date + 1, '{{}}'
from generate_series(1, {count}) as n
"""


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Buffers that EXPLAIN counts for a claim of 100 due jobs: with nothing else there, and beside a million."""
    count = effort.sized(full=1_000_000, quick=1_000_000)
    due = min(_DUE, count)
    delayed = _DELAYED.format(schema=SCHEMA, task=noop.name, count=count)
    ended = _ENDED.format(schema=SCHEMA, task=noop.name, count=count)
    figures = interleave(
        {
            "alone": partial(buffers, arena, None, due=due),
            "delayed": partial(buffers, arena, delayed, due=due),
            "ended": partial(buffers, arena, ended, due=due),
            "few, alone": partial(buffers, arena, None, due=FEW),
            "few": partial(buffers, arena, delayed, due=FEW),
        },
        rounds=effort.repeated(full=3, quick=1),
        track=track,
    )
    target = Target(ratio_at_least=0.9, ratio_at_most=1.1)
    return [
        _case("delayed", figures["delayed"], figures["alone"], due=due, target=target),
        _case("ended", figures["ended"], figures["alone"], due=due, target=target),
        _case("delayed-few-due", figures["few"], figures["few, alone"], due=FEW, target=None),
    ]


def _case(case: str, rowlock: list[float], limit: list[float], *, due: int, target: Target | None) -> Case:
    return Case(
        scenario="backlog",
        case=case,
        unit="buffers",
        rowlock_rounds=rowlock,
        limit_rounds=limit,
        limit_is=f"the same claim of {CLAIM} of {due:,} due jobs, with nothing else there",
        target=target,
    )


def buffers(arena: Arena, backlog: str | None, *, due: int) -> float:
    """Shared buffers per claim, hit or read, over a few claims that follow each other."""
    arena.clear()
    if backlog is not None:
        arena.connection.execute(backlog)
    arena.add([noop.bind(n) for n in range(due)])
    with BareLoop(arena.conninfo) as bare:
        return sum(_explained(bare) for _ in range(_CLAIMS)) / _CLAIMS


def _explained(bare: BareLoop) -> int:
    """A claim is an update, so explaining it with ANALYZE claims."""
    query = bare.claim_query(CLAIM)
    text = "explain (analyze, buffers, format json) " + statement(query.name, SCHEMA)
    row = bare.connection.execute(text, query.params).fetchone()
    assert row is not None
    plan: dict[str, Any] = (json.loads(row[0]) if isinstance(row[0], str) else row[0])[0]["Plan"]
    if plan["Actual Rows"] != CLAIM:
        raise Broken(f"a claim of {CLAIM} jobs took {plan['Actual Rows']}")
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
