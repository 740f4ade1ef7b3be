"""Claims and load: whether claims are cheap, and how much of the server jobs take."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from rowlock.doctor.check import HealthCheck, by_bounds, several, why
from rowlock.model.checkup import Finding
from rowlock.model.formatting import count, instant, span
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.doctor.queries import Peak
from rowlock.store.doctor.trial import BATCH, JobCost, Trial

_CLAIM, _LOAD = "claim", "load"
_INDEX = "jobs_ready"
# A healthy claim of 100 touches 1,007 pages, ten for each job (docs/decisions/0014), and a few for each of nine lanes
# that it finds empty. Three times as much is no trouble yet; thirty times, and it walks over what is dead.
_PAGES_OF_LANES, _PAGES_OF_A_JOB = 50, 10
_TIMES_PAGES = (3.0, 30.0)
# A claim of 100 takes 4 ms, and a worker makes one at a time: from 50 ms on it claims fewer than 20 times a second.
_CLAIM_TIME = (0.05, 0.5)
# Shares of one core, busy with nothing but jobs. Commits, vacuum and replication come on top, in proportion; so do your
# own queries. At 30 % there is time to plan, and at 70 % none.
_SHARE = (0.3, 0.7)
_A_MINUTE = 60


def judge_claims(facts: Facts, trial: Trial | None) -> Iterator[Finding]:
    """Checks of claims: the index, the pages and the time. Without a trial the index is not known."""
    if trial is not None:
        yield _plan(trial)
    yield _pages(facts, trial or Trial())
    yield _time(facts)


def _plan(trial: Trial) -> Finding:
    check = HealthCheck(_CLAIM, "claim index")
    if trial.unknown.get("claim"):
        return check.unknown(trial.unknown["claim"])
    astray = [queue for queue, cost in trial.claims.items() if _INDEX not in cost.indexes]
    if not astray:
        tried = f"tried on {count(len(trial.claims), 'queue')}" if trial.claims else "no queue to try it on"
        return check.green(_INDEX, f"one exact range for each queue and priority, in order ({tried})")
    used = ", ".join(sorted(trial.claims[astray[0]].indexes - {"workers_pkey", "jobs_pkey"})) or "no index"
    return check.ill(
        "red",
        used,
        f"a claim of {several(astray)} does not look through {_INDEX}: it reads every job there is",
        do=f"see objects and indexes for what became of {_INDEX}",
    )


def _pages(facts: Facts, trial: Trial) -> Finding:
    check = HealthCheck(_CLAIM, "claim pages")
    looked = facts.stats.database.claim if facts.stats else None
    if trial.claims:
        figures = {queue: (cost.buffers, cost.rows) for queue, cost in trial.claims.items()}
    elif looked is not None:
        figures = {"all queues": (looked.buffers, looked.rows)}  # this role may only look
    elif trial.unknown.get("claim"):
        return check.unknown(trial.unknown["claim"])
    else:
        return check.green("none", "no queue has jobs or workers", value=0.0)
    times = {queue: pages / (_PAGES_OF_LANES + _PAGES_OF_A_JOB * rows) for queue, (pages, rows) in figures.items()}
    queue = max(times, key=times.__getitem__)
    pages, rows = figures[queue]
    amber, red = _TIMES_PAGES
    return check.judged(
        by_bounds(times[queue], amber=amber, red=red),
        f"{pages:,} for {count(rows, 'job')}",
        well=f"of {queue}, the dearest",
        ill=f"a claim of {queue} touches {times[queue]:.0f} times as many pages as it should: it walks over dead rows",
        do="see dead rows and oldest snapshot; then reindex index concurrently jobs_ready",
        value=pages,
    )


def _time(facts: Facts) -> Finding:
    check = HealthCheck(_CLAIM, "claim time")
    if facts.stats is None or facts.stats.fleet.workers is None:
        return check.unknown(why(facts, "workers"))
    claims = facts.stats.fleet.claims
    if claims is None:
        return check.green("none made", "no live worker has found a job yet")
    mean = claims.mean.total_seconds()
    return check.judged(
        by_bounds(mean, amber=_CLAIM_TIME[0], red=_CLAIM_TIME[1]),
        f"{span(claims.mean)}, at most {span(claims.max)}",
        well=f"{claims.rows:.3g} jobs a claim, measured by the workers",
        ill=f"{claims.rows:.3g} jobs a claim: the server or the way to it is slow, or claims wait",
        do="see claim pages and lock waits, then the server's load and the network",
        value=mean,
    )


def judge_load(facts: Facts, trial: Trial) -> Iterator[Finding]:
    """Check how much of one core of the server the busiest minute took, by the present cost of a job."""
    check = HealthCheck(_LOAD, "share of a core")
    if trial.job is None:
        yield check.unknown(trial.unknown.get("job"))
        return
    if facts.stats is None or "peak" in facts.unknown:
        yield check.unknown(why(facts, "peak"))
        return
    cost = trial.job.whole.total_seconds()
    peak = 0.0 if facts.peak is None else facts.peak.claimed / _A_MINUTE
    now = sum(queue.rates.claimed for queue in facts.stats.queues.values() if queue.rates is not None)
    share = max(peak, now) * cost
    estimate = _estimate(facts.peak, trial.job, now=now, peak=peak)
    yield check.judged(
        by_bounds(share, amber=_SHARE[0], red=_SHARE[1]),
        f"{share:.1%} at the peak",
        well=estimate,
        ill=estimate,
        do="in this order: enqueue_many and fewer, larger jobs; a shorter Keep; a larger server, or one of its own; "
        "other queues in other databases; and when that is not enough, a broker",
        value=share,
    )


def _estimate(busiest: Peak | None, cost: JobCost, *, now: float, peak: float) -> str:
    """How the share was computed."""
    when = "" if busiest is None else f" ({instant(busiest.minute)})"
    most = timedelta(seconds=1) / cost.whole if cost.whole else 0.0
    return (
        f"{now:,.3g} jobs/s now, {peak:,.3g} in the busiest minute of the day{when}; a job costs the server "
        f"{span(cost.whole)} ({span(cost.enqueue)} to enqueue alone, {span(cost.claim)} to claim and "
        f"{span(cost.settle)} to settle among {BATCH}), tried just now and undone: one core does {most:,.0f} jobs/s, "
        "commits not counted"
    )
