"""What the dashboard costs: how long each page takes on ten million ended jobs, and what watching takes of a drain."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import httpx

from benchmarks.arena import Arena
from benchmarks.drain import drained
from benchmarks.measure import Broken, Case, Effort, Target, Track, interleave, percentile
from benchmarks.tasks import SCHEMA, noop
from rowlock.model.stats.histogram import pack

_SLOWEST = 300.0  # milliseconds
_REQUESTS = 15
_CHUNK = 500_000
_STARTS_WITHIN = 60.0
_WATCHED = ("/", "/jobs", "/workers")
_ALLOWED = "the most that is allowed"

# A week of jobs of twenty tasks in six queues: one in fifty has failed, one in a hundred is a workflow, and one is of a
# task that is looked for and hardly there. Newer ones have higher ids, as clients make them.
_ENDED = """
insert into {schema}.history (
    id, queue, task, state, priority, failures, crashes, claims, attempts, run_at, created_at, started_at, ended_at,
    expires_on, args, result, errors, reason, tags, version
)
select
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8'
        || lpad(to_hex(n), 15, '0'))::uuid,
    'queue' || n % 6, case when n = 7 then 'once.only' else 'shop.task' || n % 20 end,
    case when n % 50 = 0 then 'failed' when n % 97 = 0 then 'cancelled' else 'succeeded' end,
    0, (n % 50 = 0)::integer, 0, 1, 5, at, at, at + interval '20 ms', at + interval '120 ms',
    (at at time zone 'UTC')::date + 8, json_build_object('order', n, 'customer', 'c' || n % 9973)::json,
    case when n % 50 <> 0 then '{{"ok": true}}'::json end,
    case when n % 50 = 0 then array[json_build_object(
        'type', 'shop.errors.Timeout', 'message', 'no answer',
        'traceback', repeat('  File "shop.py", line 1' || chr(10), 8),
        'attempt', 1, 'worker', null, 'started_at', at, 'ended_at', at)::json] else '{{}}' end,
    case when n % 50 = 0 then 'exhausted' when n % 97 = 0 then 'asked' end, array['tag' || n % 11],
    case when n % 100 = 1 then 1 end
from (
    select n, {schema}.now() - interval '7 days' + (n::float8 / {count}) * interval '7 days' as at
    from generate_series({first}, {last}) as n
) as made
"""
_MINUTES = """
insert into {schema}.minutes (
    minute, worker, queue, task, claimed, succeeded, failed, cancelled, retried, seconds, slowest, durations, waited,
    longest, waits
)
select
    date_trunc('minute', {schema}.now()) - m * interval '1 minute', md5('w' || w)::uuid,
    'queue' || t % 6, 'shop.task' || t, 700, 690, 10, 0, 5, 70, 1, {durations}, 7, 0.5, {waits}
from
    generate_series(1, 1439) as m,
    generate_series(1, case when m <= 5 then 4 else 1 end) as w, -- those of all workers become one after five minutes
    generate_series(0, 19) as t
"""
# How long 700 attempts took, and jobs waited: most of them near the middle.
_SPREAD = {"durations": pack([0] * 9 + [100, 500, 100]), "waits": pack([0] * 2 + [100, 500, 100])}
_EVENTS = """
insert into {schema}.events (id, at, kind, job, actor, details)
select
    gen_random_uuid(), {schema}.now() - n * interval '1 second', 'retried', gen_random_uuid(), 'ann',
    '{{"why": "host is back"}}'
from generate_series(1, 200000) as n
"""
_LIVE = """
insert into {schema}.jobs (id, queue, task, priority, attempts, run_at, created_at, args)
select
    (lpad(to_hex((extract(epoch from {schema}.now()) * 1000)::bigint), 12, '0') || '7000900000'
        || lpad(to_hex(n), 10, '0'))::uuid,
    'queue' || n % 6, 'shop.task' || n % 20, n % 3, 10, {schema}.now() + (n % 2) * interval '1 day', {schema}.now(),
    '{{}}'
from generate_series(1, {count}) as n
"""


def measure(arena: Arena, effort: Effort, track: Track) -> list[Case]:
    """Every page on a full history, then a drain with and without somebody who watches."""
    count = effort.sized(full=10_000_000, quick=200_000)
    _furnish(arena, count, track)
    pages = _pages(arena)
    rounds = effort.repeated(full=5, quick=3)
    track.begin(len(pages))
    cases = []
    with served() as dashboard:
        for name, path in pages.items():
            track.step(f"page {name}")
            cases.append(_page_case(name, [dashboard.timed(path) for _ in range(_REQUESTS)], path, count))
    return [*cases, _drain_case(arena, effort, rounds, track)]


def _furnish(arena: Arena, count: int, track: Track) -> None:
    firsts = range(1, count + 1, _CHUNK)
    track.begin(len(firsts) + 1)
    arena.clear()
    for first in firsts:
        track.step(f"history, {first:,} of {count:,}")
        last = min(count, first + _CHUNK - 1)
        arena.connection.execute(_ENDED.format(schema=SCHEMA, count=count, first=first, last=last))
    track.step("everything else")
    for statement in (_MINUTES, _EVENTS, _LIVE):
        arena.connection.execute(statement.format(schema=SCHEMA, count=min(count, 100_000), **_SPREAD))
    arena.connection.execute(f"vacuum analyze {SCHEMA}.history, {SCHEMA}.jobs, {SCHEMA}.minutes, {SCHEMA}.events")


def _pages(arena: Arena) -> dict[str, str]:
    """Every page, and what is asked of some in ways that could be slow."""
    old = arena.ask(f"select id from {SCHEMA}.history where state = 'failed' order by id limit 1")
    workflow = arena.ask(f"select id from {SCHEMA}.history where version is not null order by id limit 1")
    return {
        "overview": "/",
        "overview-day": "/?span=24h",
        "jobs": "/jobs",
        "jobs-failed": "/jobs?state=failed",
        "jobs-far-back": f"/jobs?before={old}",
        "jobs-rare-task": "/jobs?task=once.only",
        "jobs-no-match": "/jobs?task=there.is.none&queue=nowhere",
        "job": f"/jobs/{old}",
        "queues": "/queues",
        "workers": "/workers",
        "schedules": "/schedules",
        "workflows": "/workflows",
        "workflows-no-match": "/workflows?workflow=there.is.none",
        "workflow": f"/workflows/{workflow}",
        "database": "/database",
        "audit": "/audit",
        "audit-no-match": "/audit?actor=nobody",
    }


def _page_case(name: str, took: list[float], path: str, count: int) -> Case:
    return Case(
        scenario="dashboard",
        case=name,
        unit="ms",
        rowlock_rounds=took,
        limit_rounds=[_SLOWEST],
        limit_is=_ALLOWED,
        target=Target(at_most=_SLOWEST),
        details={"path": path, "history": count, "p95": round(percentile(took, 0.95), 1)},
    )


def _drain_case(arena: Arena, effort: Effort, rounds: int, track: Track) -> Case:
    count = effort.size or (20_000 if effort.quick else 100_000)
    figures = interleave(
        {
            "alone": partial(drained, arena, count, slots=100, task=noop),
            "watched": partial(_watched_drain, arena, count),
        },
        rounds=rounds,
        track=track,
    )
    return Case(
        scenario="dashboard",
        case="drain-watched",
        unit="jobs/s",
        rowlock_rounds=figures["watched"],
        limit_rounds=figures["alone"],
        limit_is="the same drain while nobody watches",
        target=Target(ratio_at_least=0.9),
        details={"jobs": count, "watched": list(_WATCHED)},
    )


def _watched_drain(arena: Arena, count: int) -> float:
    with served() as dashboard, ExitStack() as stack:
        for path in _WATCHED:
            stack.enter_context(dashboard.watched(path))
        return drained(arena, count, slots=100, task=noop)


class Dashboard:
    """`rowlock dashboard` in a process of its own, and somebody with a token."""

    def __init__(self, address: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=30, follow_redirects=True
        )

    def timed(self, path: str) -> float:
        """Milliseconds until the whole page had come."""
        began = time.perf_counter()
        answer = self._http.get(path)
        took = (time.perf_counter() - began) * 1000
        if answer.status_code != 200:
            raise Broken(f"{path} answered {answer.status_code}: {answer.text[:200]}")
        return took

    @contextmanager
    def watched(self, path: str) -> Iterator[None]:
        """A browser that watches a page: it takes what is sent until the end."""
        seen = threading.Event()

        def watch() -> None:
            with self._http.stream("GET", path, headers={"accept": "text/event-stream"}) as answer:
                for line in answer.iter_lines():
                    if line.startswith("event:"):
                        seen.set()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        if not seen.wait(_STARTS_WITHIN):
            raise Broken(f"{path} sent nothing to somebody who watches")
        yield


@contextmanager
def served() -> Iterator[Dashboard]:
    """The dashboard of the benchmarks' app."""
    command = [sys.executable, "-m", "rowlock", "dashboard", "--app", "benchmarks.tasks", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if found := re.search(r"(http://[^/]+)/login\S*#(\S+)", line):
                    yield Dashboard(found[1], found[2])
                    return
            raise Broken("the dashboard did not start; try: rowlock dashboard --app benchmarks.tasks")
        finally:
            process.terminate()
