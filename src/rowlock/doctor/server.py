"""Server: whether it keeps what it has accepted, and has room for us."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rowlock.doctor.check import HealthCheck, by_bounds, several, why, worst
from rowlock.model.checkup import Finding, Level
from rowlock.model.formatting import count, span
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.doctor.queries import InTransaction

_GROUP = "server"
OLDEST_SUPPORTED, NEWEST_TRIED = 14, 18
# A worker holds three connections, and a deployment starts new workers before the old ones have gone.
_CONNECTIONS_OF_A_WORKER = 3
# Ours are 60 bytes: one percent of the usual 8 GB is over a million that somebody has not taken. PostgreSQL warns at a
# half, and when it is full, every commit that notifies fails.
_NOTIFICATIONS = (0.01, 0.5)
# A delay of a second is felt; by half a minute, a job that is to run at nine runs while it is not yet nine.
_CLOCK = (timedelta(seconds=1), timedelta(seconds=30))
# Autovacuum freezes at its bound, 200 million by default; half as much again, and it is losing. At 1.6e9 it drops
# everything else to freeze, and at 2^31 the server stops.
_BEYOND_FREEZE = 1.5
_LAST_CALL = 1_500_000_000
_END_OF_IDS = 2**31
_REMOTE = {"on", "remote_write", "remote_apply"}


def judge_server(facts: Facts) -> Iterator[Finding]:
    """All checks of the server."""
    yield _version(facts)
    yield _writable(facts)
    yield _switch(facts, "fsync", "a power cut can destroy the database, jobs and all")
    yield _switch(facts, "full_page_writes", "a power cut can leave half-written pages, which nothing can fix")
    yield _synchronous_commit(facts)
    yield _standbys(facts)
    yield _isolation(facts)
    yield _silence(facts)
    yield _connections(facts)
    yield _notifications(facts)
    yield _wraparound(facts)


def _version(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "version")
    if facts.server is None:
        return check.unknown(why(facts, "server"))
    major = facts.server.version // 10_000
    figure = f"PostgreSQL {major}.{facts.server.version % 10_000}"
    if major < OLDEST_SUPPORTED:
        says = f"Rowlock is tested with {OLDEST_SUPPORTED} to {NEWEST_TRIED}"
        return check.ill("red", figure, says, do="upgrade PostgreSQL")
    if major > NEWEST_TRIED:
        return check.ill(
            "amber", figure, f"this Rowlock was tested up to {NEWEST_TRIED}", do="look for a newer Rowlock"
        )
    return check.green(figure, "supported")


def _writable(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "writable")
    if facts.server is None:
        return check.unknown(why(facts, "server"))
    if facts.server.recovering:
        return check.ill(
            "red",
            "standby",
            "this server follows another one and takes no writes: nothing is enqueued, claimed or settled here",
            do="connect to the primary; name all hosts in the address, and the one that writes is found",
        )
    if facts.settings.get("default_transaction_read_only") == "on":
        return check.ill(
            "red",
            "read only",
            "default_transaction_read_only is on: enqueues fail and workers wait",
            do="set default_transaction_read_only = off when the server may be written to again",
        )
    return check.green("yes", "a primary that takes writes")


def _switch(facts: Facts, name: str, danger: str) -> Finding:
    check = HealthCheck(_GROUP, name)
    value = facts.settings.get(name)
    if value is None:
        return check.unknown(why(facts, "settings"))
    if value != "on":
        return check.ill("red", value, danger, do=f"alter system set {name} = on; select pg_reload_conf()")
    return check.green(value, "what is on disk survives a power cut")


def _synchronous_commit(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "synchronous_commit")
    value = facts.settings.get("synchronous_commit")
    if value is None:
        return check.unknown(why(facts, "settings"))
    elsewhere = [
        f"{one.value} for {one.role or 'this database'}"
        for one in facts.overrides or ()
        if one.name == "synchronous_commit" and one.value == "off"
    ]
    if value != "off" and not elsewhere:
        return check.green(value, "what was acknowledged is on disk")
    return check.ill(
        "red",
        several(elsewhere) if value != "off" else value,
        "the last enqueues and outcomes before a crash are lost although they were acknowledged",
        do="set synchronous_commit = on, for roles and databases too; claims do without by themselves",
    )


def _standbys(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "synchronous standbys")
    named = facts.settings.get("synchronous_standby_names")
    if named is None:
        return check.unknown(why(facts, "settings"))
    if not named:
        return check.green("none asked for", "commits wait for this server's disk alone")
    if facts.settings.get("synchronous_commit") not in _REMOTE:
        return check.ill(
            "amber",
            named,
            "synchronous_commit does not wait for them: what they have not got is lost when one takes over",
            do="set synchronous_commit = on",
        )
    if facts.standbys is None or any(one.waited_for is None for one in facts.standbys):
        return check.unknown(why(facts, "standbys") or "which standbys commits wait for")
    following = [one.application for one in facts.standbys if one.waited_for in {"sync", "quorum"}]
    if not following:
        return check.ill(
            "red",
            f"0 of {named}",
            "commits wait for a standby, and none is there: every write hangs",
            do="bring a standby back, or alter system set synchronous_standby_names = ''",
        )
    return check.green(several(following), "commits wait for them")


def _isolation(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "isolation")
    value = facts.settings.get("default_transaction_isolation")
    if value is None:
        return check.unknown(why(facts, "settings"))
    if value != "read committed":
        return check.ill(
            "amber",
            value,
            "Rowlock's own sessions do not mind, but your transactions that enqueue can fail and must be repeated",
            do="set default_transaction_isolation = 'read committed', or repeat them on a serialization failure",
        )
    return check.green(value, "as our statements are made for")


def _silence(facts: Facts) -> Finding:
    """Always green: the limit is off by default, and the check of snapshots finds the consequences."""
    check = HealthCheck(_GROUP, "idle transactions")
    value = facts.settings.get("idle_in_transaction_session_timeout")
    if value is None:
        return check.unknown(why(facts, "settings"))
    if value == "0":
        return check.green(
            "no limit", "ours end by themselves; for others, idle_in_transaction_session_timeout = '10min' is wise"
        )
    return check.green(span(timedelta(milliseconds=int(value))), "ended after that")


def _connections(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "connections")
    if facts.stats is None or facts.stats.database.connections is None:
        return check.unknown(why(facts, "connections"))
    found = facts.stats.database.connections
    kept_back = sum(int(facts.settings.get(f"{who}reserved_connections", 0)) for who in ("superuser_", ""))
    usable = max(1, found.limit - kept_back)
    workers = [worker for worker in facts.stats.fleet.workers or () if worker.lease_left > timedelta(0)]
    needed = _CONNECTIONS_OF_A_WORKER * len(workers)
    share = found.used / usable
    crowded: Level = "amber" if usable - found.used < needed else "green"
    return check.judged(
        worst([by_bounds(share, amber=0.8, red=0.95), crowded]),
        f"{found.used} of {usable}",
        well=f"room for {usable - found.used} more; {count(len(workers), 'live worker')}, {needed} for them",
        ill=f"room for {usable - found.used} more, and a deployment needs {needed} while old workers go",
        do="raise max_connections, shrink your pools, or put a pooler before the web processes",
        value=share,
    )


def _notifications(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "notify queue")
    if facts.notifications is None:
        return check.unknown(why(facts, "notifications"))
    amber, red = _NOTIFICATIONS
    return check.judged(
        by_bounds(facts.notifications, amber=amber, red=red),
        f"{facts.notifications:.2%} full",
        well="listeners take their notifications",
        ill="a session that listens is in a transaction and takes none; from a half on Rowlock notifies nobody",
        do=_end_of(facts.transactions),
        value=facts.notifications,
    )


def _end_of(sessions: Sequence[InTransaction] | None) -> str:
    if not sessions:
        return "find the session: select pid, xact_start, query from pg_stat_activity order by xact_start"
    oldest = sessions[0]
    lasting = "" if oldest.seconds is None else f", for {span(timedelta(seconds=oldest.seconds))}"
    who = f"{oldest.application or 'without a name'}, {oldest.user} in {oldest.database}, {oldest.state}{lasting}"
    return f"end the oldest transaction: select pg_terminate_backend({oldest.pid})  ({who})"


def _wraparound(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "wraparound")
    if facts.server is None:
        return check.unknown(why(facts, "server"))
    freeze = int(facts.settings.get("autovacuum_freeze_max_age", 200_000_000))
    multi = int(facts.settings.get("autovacuum_multixact_freeze_max_age", 400_000_000))
    level = worst(
        by_bounds(age, amber=min(_BEYOND_FREEZE * bound, _END_OF_IDS / 2), red=_LAST_CALL)
        for age, bound in ((facts.server.age, freeze), (facts.server.multixact_age, multi))
    )
    age = max(facts.server.age, facts.server.multixact_age)
    return check.judged(
        level,
        f"{age / _END_OF_IDS:.1%} of the way",
        well=f"{age:,} transactions since the oldest that is not frozen",
        ill=f"{age:,} transactions are not frozen, our tables have {facts.server.oldest_table or 0:,}; "
        "at 2,147,483,648 the server stops",
        do="vacuum (freeze) the oldest tables; see snapshots for who keeps vacuum from it",
        value=age,
    )


def judge_clock(facts: Facts, *, ahead: timedelta, unsure: timedelta) -> Iterator[Finding]:
    """Compare our clock with the server's, and the server's with the schema's now()."""
    check = HealthCheck(_GROUP, "clock")
    difference = max(timedelta(0), abs(ahead) - unsure)
    amber, red = (bound.total_seconds() for bound in _CLOCK)
    yield check.judged(
        by_bounds(difference.total_seconds(), amber=amber, red=red),
        f"{span(abs(ahead))} ± {span(unsure)}",
        well="this machine and the server agree",
        ill=f"this machine is {'ahead' if ahead > timedelta(0) else 'behind'}: a run_at that it computes is as wrong",
        do="run NTP on both; delay= is counted by the server's clock alone",
        value=ahead.total_seconds(),
    )
    moved = HealthCheck(_GROUP, "moved clock")
    if facts.server is None:
        yield moved.unknown(why(facts, "server"))
    elif facts.server.ahead:
        yield moved.ill(
            "red",
            f"{facts.server.ahead:+,.0f} s",
            "rowlock.now() has been replaced, by a test that was not allowed to end: jobs run at the wrong time",
            do="end the test's travel, or run the definition of rowlock.now() from the migrations again",
            value=facts.server.ahead,
        )
    else:
        yield moved.green("no", "rowlock.now() is the server's time", value=0.0)
