"""Holds what the database says against what the oracle knows: the invariants, by the numbers of the catalogue.

I1 nothing lost, I2 no ghosts, I3 one end, I4 legal steps, I5 the accepted outcome is the current claim's, I6 accepted
attempts lie inside their own claims, I8 claims and crashes counted right, I16 nothing after a cancellation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.faults import recorder
from tests.faults.oracle import Line, Oracle
from tests.faults.recorder import ENDED, Version, timeline

Db = psycopg.Connection[Any]

# The promise: a job that has had so many fails as poison.
MOST_CRASHES = 3
# Only what had begun is charged with a crash, and beside a suspect only the suspect.
_RESCUES = """
select job from rowlock.events
where kind in ('rescued', 'poisoned') and coalesce((details ->> 'crashed')::boolean, true)
"""
# From one version of a job to the next; a job that leaves and its row in history are written by one statement.
_STEPS = {
    None: {"ready", "waiting"},
    "waiting": {"waiting", "ready", "running", "left"},
    "ready": {"ready", "waiting", "running", "left"},
    "running": {"running", "ready", "waiting", "left"},
    "left": ENDED,
}
# Between the clocks of a server and of a process on the same machine there is none; between their roundings there is.
_ROUNDING = 1e-5


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a job, as the recorder saw it, and how it ended."""

    token: str
    worker: str
    began: float
    ended: float
    crashed: bool


@dataclass(slots=True)
class Flight:
    """One job's life."""

    job: str
    versions: list[Version]
    claims: list[Claim] = field(default_factory=list)
    pardons: int = 0
    end: Version | None = None

    @property
    def rescues(self) -> list[Claim]:
        return [claim for claim in self.claims if claim.crashed]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found: nothing, if all is well."""

    faults: list[str]
    flights: list[Flight]
    done: dict[str, list[Line]]
    killed: set[int]
    pids: dict[str, int]

    def _unjust(self, flight: Flight) -> int:
        """Crashes that stay with a job although nobody had killed its worker, and it came back too late to say so."""
        just = sum(self.pids.get(claim.worker) in self.killed for claim in flight.rescues)
        return max(0, (flight.end or flight.versions[-1]).crashes - just)

    @property
    def counts(self) -> dict[str, int]:
        """For the summary."""
        accepted = {one.claims[-1].token for one in self.flights if one.end and one.claims}
        return {
            "jobs": len(self.flights),
            "claims": sum(len(one.claims) for one in self.flights),
            "rescues": sum(len(one.rescues) for one in self.flights),
            "pardons": sum(one.pardons for one in self.flights),
            "poison": sum(one.end is not None and one.end.reason == "poison" for one in self.flights),
            "effects": sum(map(len, self.done.values())),
            "unjust": sum(self._unjust(one) for one in self.flights),
            "refused": sum(token not in accepted for token in self.done),
        }


def check(oracle: Oracle, db: Db, *, all_ended: bool = True, exact_crashes: bool = True) -> Verdict:
    """Look at everything. `exact_crashes`: only kill -9 costs a crash; without it, so may a lease that ran out."""
    flights = [_flight(job, versions) for job, versions in recorder.flights(db).items()]
    verdict = Verdict(
        faults=[],
        flights=flights,
        done=oracle.by("token", "done"),
        killed={line["worker"] for line in oracle.read("killing")},
        pids=recorder.workers(db),
    )
    verdict.faults.extend(_books(oracle, db, all_ended=all_ended))
    began = oracle.by("token", "began")
    rescues = Counter(str(job) for (job,) in db.execute(_RESCUES))
    for flight in flights:
        found = [
            *_steps(flight),
            *_counted(flight, rescues[flight.job]),
            *_accepted(flight, began=began, done=verdict.done),
            *(_charged(flight, verdict) if exact_crashes else ()),
        ]
        verdict.faults.extend(f"job {flight.job}: {fault}\n{timeline(flight.versions)}" for fault in found)
    return verdict


def assert_all_is_well(verdict: Verdict) -> None:
    """Fail with the first few faults."""
    faults = verdict.faults
    assert not faults, f"{len(faults)} faults, {verdict.counts}:\n" + "\n".join(faults[:5])


def _books(oracle: Oracle, db: Db, *, all_ended: bool) -> Iterator[str]:
    """I1, I2, I3: what is there, and how often."""
    live = dict(db.execute("select id::text, args ->> 'n' from rowlock.jobs").fetchall())
    ended = db.execute("select id::text, args ->> 'n' from rowlock.history").fetchall()
    times = Counter(job for job, _ in ended)
    for line in oracle.read("acknowledged"):
        if line["job"] not in times and line["job"] not in live:
            yield f"I1: job {line['job']} (n = {line['n']}) was acknowledged and is lost"
    if all_ended:
        yield from (f"I1: job {job} has not ended" for job in live)
    sent = {str(line["n"]) for line in oracle.read("sent")}
    yield from (f"I2: nobody sent job {job} (n = {n})" for job, n in [*ended, *live.items()] if n not in sent)
    yield from (f"I3: job {job} ended {count} times" for job, count in times.items() if count > 1)
    yield from (f"I3: job {job} has ended and lives" for job in times.keys() & live.keys())


def _flight(job: str, versions: list[Version]) -> Flight:
    """Read the line of versions: which claims there were, and what became of each."""
    # One statement writes both, and its triggers run in the order of its parts.
    versions = sorted(versions, key=lambda version: version.state in ENDED)
    flight = Flight(job, versions)
    before: Version | None = None
    for index, now in enumerate(versions):
        if now.state == "running" and (before is None or before.token != now.token):
            flight.claims.append(_claim(versions[index:]))
        if before is not None and now.crashes < before.crashes:
            flight.pardons += before.crashes - now.crashes
        if now.state in ENDED:
            flight.end = now
        before = now
    return flight


def _claim(versions: list[Version]) -> Claim:
    first = versions[0]
    assert first.token is not None
    assert first.worker is not None
    held = over = first
    for version in versions:
        held, over = over, version
        if version.state in ENDED or version.token != first.token:
            break
    else:
        held = over  # it is held to this day
    # Compared with the last version that was held: while it was, an earlier crash may have been taken back.
    return Claim(first.token, first.worker, first.at, over.at, crashed=over.crashes > held.crashes)


def _steps(flight: Flight) -> Iterator[str]:
    """I3, I4, I16: a path, one end, nothing after it."""
    before: Version | None = None
    for now in flight.versions:
        if now.state not in _STEPS.get(before.state if before else None, set()):
            yield f"I4: from {before.state if before else 'nothing'} to {now.state}"
        if before is not None and before.state == now.state == "running" and before.token != now.token:
            yield "I5: claimed while it was claimed"
        before = now
    ends = [one.state for one in flight.versions if one.state in ENDED]
    if len(ends) > 1:
        yield f"I3: ended as {', then '.join(ends)}"


def _counted(flight: Flight, rescues: int) -> Iterator[str]:
    """I8: claims are starts, crashes are rescues that were not taken back."""
    last = flight.end or flight.versions[-1]
    if rescues != len(flight.rescues):
        yield f"I8: rescued {rescues} times, and charged with {len(flight.rescues)} crashes"
    if last.claims != len(flight.claims):
        yield f"I8: says {last.claims} claims, had {len(flight.claims)}"
    if last.crashes != len(flight.rescues) - flight.pardons:
        yield f"I8: says {last.crashes} crashes, had {len(flight.rescues)} and {flight.pardons} taken back"
    if last.crashes > MOST_CRASHES or (last.crashes == MOST_CRASHES) != (last.reason == "poison"):
        yield f"I8: {last.crashes} crashes, and it ended as {last.reason or last.state}"


def _accepted(flight: Flight, *, began: dict[str, list[Line]], done: dict[str, list[Line]]) -> Iterator[str]:
    """I5, I6: success is that of the last claim, whose handler did its work while the claim was its own."""
    if flight.end is None or flight.end.state != "succeeded":
        return
    last = flight.claims[-1]
    if flight.end.result != last.token:
        yield f"I5: the outcome of {flight.end.result} was accepted, the job belonged to {last.token}"
    starts, ends = began.get(last.token, []), done.get(last.token, [])
    if (len(starts), len(ends)) != (1, 1):
        yield f"I6: succeeded, and its handler began {len(starts)} times and was done {len(ends)} times"
    elif not last.began - _ROUNDING <= starts[0].at <= ends[0].at <= last.ended + _ROUNDING:
        yield f"I6: ran from {starts[0].at:.6f} to {ends[0].at:.6f}, held from {last.began:.6f} to {last.ended:.6f}"


def _charged(flight: Flight, verdict: Verdict) -> Iterable[str]:
    """I8: a crash was that of a worker which was killed."""
    return [
        f"I8: charged with a crash of worker {claim.worker} (pid {verdict.pids.get(claim.worker)}), which nobody killed"
        for claim in flight.rescues
        if verdict.pids.get(claim.worker) not in verdict.killed
    ]
