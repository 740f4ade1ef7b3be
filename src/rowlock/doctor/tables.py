"""Tables: vacuum, bloat, partitions, and the sessions that hold them up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta

from rowlock.doctor.check import HealthCheck, by_bounds, several, why
from rowlock.model.checkup import Finding, Level
from rowlock.model.formatting import age, count, span
from rowlock.model.stats.stats import Snapshot
from rowlock.store.doctor.checkup_facts import Facts
from rowlock.store.doctor.queries import TableNow
from rowlock.store.schema import PARTITIONED, Partition

_GROUP = "tables"
# Autovacuum comes when a table has so many dead rows; at five times as many it is kept from its work or cannot keep up.
# Under 20,000, a few hundred pages, no statement of ours feels them; among 300,000 a look from below takes 160 ms.
_TIMES_TOLERATED = 5
_DEAD_FELT = 20_000
_DEAD_TOO_MANY = 1_000_000
# A report may last ten minutes; what lasts longer is worth a look, and an hour is a transaction that somebody forgot.
# A younger one matters if dead rows pile up and it has seen transactions go by.
_HELD = (timedelta(minutes=10), timedelta(hours=1))
_TRANSACTIONS_SEEN = 1_000
# Workers wait for a lock no longer than their deadline, five seconds by default.
_LOCK_WAITS = (timedelta(seconds=5), timedelta(minutes=1))
# Retention runs every hour, and gives up for the while when readers are in its way.
_RETENTION_LAG = (timedelta(hours=3), timedelta(days=7))
# Parts are made a week ahead of the longest retention, every hour: fewer than three days mean that nobody has for days.
_MARGIN = 7
_PARTS_AHEAD = 3
# A row with its entries in five indexes; below 100 MB nobody minds, and ten times what the live rows need is air.
_ROW_OVERHEAD = 300
_ROW_WIDTH = 300
_BLOAT = (100e6, 10.0)
_BLOAT_RED = (10e9, 50.0)


def judge_tables(facts: Facts) -> Iterator[Finding]:
    """All checks of tables."""
    yield _autovacuum(facts)
    yield _dead_rows(facts)
    yield _snapshots(facts)
    yield _locks(facts)
    yield _bloat(facts)
    yield _retention(facts)
    yield _parts(facts)
    yield _default_parts(facts)


def _autovacuum(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "autovacuum")
    switches = {name: facts.settings.get(name) for name in ("autovacuum", "track_counts")}
    if None in switches.values() or facts.tables is None:
        return check.unknown(why(facts, "settings") or why(facts, "tables"))
    off = [name for name, value in switches.items() if value != "on"]
    if off:
        return check.ill(
            "red",
            f"{' and '.join(off)} off",
            "nothing removes dead rows: the tables grow and the server ends at wraparound",
            do="; ".join(f"alter system set {name} = on" for name in off) + "; select pg_reload_conf()",
        )
    without = [table.name for table in facts.tables if _is_without(table)]
    if without:
        return check.ill(
            "red",
            f"off for {several(without)}",
            "nothing removes the dead rows of a table that changes with every job",
            do="; ".join(f'alter table "{facts.schema}".{name} reset (autovacuum_enabled)' for name in without[:3]),
        )
    return check.green("on", "for every table of ours")


def _is_without(table: TableNow) -> bool:
    return any(_option(table, "autovacuum_enabled") == word for word in ("false", "off", "0", "no"))


def _option(table: TableNow, name: str) -> str | None:
    return next((said.partition("=")[2] for said in table.options if said.startswith(f"{name}=")), None)


def dead_rows(facts: Facts) -> tuple[Level, TableNow | None]:
    """The level, and the table with the most dead rows: of those over the bound, else of all."""
    found = sorted(facts.tables or (), key=lambda table: table.dead, reverse=True)
    ill = [table for table in found if table.dead >= max(_DEAD_FELT, _TIMES_TOLERATED * _tolerated(facts, table))]
    if not ill:
        return "green", found[0] if found else None
    return ("red" if ill[0].dead >= _DEAD_TOO_MANY else "amber"), ill[0]


def _tolerated(facts: Facts, table: TableNow) -> float:
    """The number of dead rows from which on autovacuum comes."""

    def setting(name: str, default: str) -> float:
        return float(_option(table, name) or facts.settings.get(name) or default)

    least = setting("autovacuum_vacuum_threshold", "50")
    return least + setting("autovacuum_vacuum_scale_factor", "0.2") * max(0, table.live)


def _dead_rows(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "dead rows")
    if facts.tables is None or facts.stats is None:
        return check.unknown(why(facts, "tables"))
    level, table = dead_rows(facts)
    if table is None:
        return check.unknown("there is no table of ours")
    last = age(table.vacuumed_at, facts.stats.at) or "never"
    return check.judged(
        level,
        f"{table.dead:,} in {table.name}",
        well=f"beside {table.live:,} live ones, vacuum was last there: {last}",
        ill=f"beside {table.live:,} live ones, vacuum was last there: {last}; looks from the bottom walk over them",
        do=f'end who holds the oldest snapshot (below), then vacuum "{facts.schema}".{table.name}',
        value=table.dead,
    )


def _snapshots(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "oldest snapshot")
    found = facts.stats.database.snapshots if facts.stats else None
    if found is None:
        return check.unknown(why(facts, "snapshots"))
    if not found:
        return check.green("none held", "vacuum can remove what is dead")
    oldest = max(found, key=lambda one: (one.held_for or timedelta(0), one.transactions))
    held = (oldest.held_for or timedelta(0)).total_seconds()
    level = by_bounds(held, amber=_HELD[0].total_seconds(), red=_HELD[1].total_seconds())
    blocking = [one for one in found if one.transactions >= _TRANSACTIONS_SEEN]
    if level == "green" and blocking and dead_rows(facts)[0] != "green":
        level, oldest = "amber", blocking[0]
    if level == "green" and oldest.kind == "session" and oldest.state is None:
        return check.unknown(why(facts, "snapshots"))
    return check.judged(
        level,
        _lasting(oldest),
        well=f"{oldest.kind} {oldest.name}".strip(),
        ill=f"{_holder(oldest)} keeps vacuum from removing anything that died since, in every table of this database",
        do=_end(oldest),
        value=held,
    )


def _lasting(one: Snapshot) -> str:
    since = f"{one.transactions:,} transactions ago"
    return since if one.held_for is None else f"{span(one.held_for)}, {since}"


def _holder(one: Snapshot) -> str:
    facts = [f"pid {one.pid}" if one.pid else "", one.user or "", one.state or ""]
    return f"{one.kind} {one.name!r} ({', '.join(filter(None, facts))})"


def _end(one: Snapshot) -> str:
    match one.kind:
        case "prepared transaction":
            return f"commit prepared '{one.name}', or rollback prepared '{one.name}'"
        case "replication slot":
            return f"bring its standby back, or select pg_drop_replication_slot('{one.name}')"
        case _:
            after = "; then set idle_in_transaction_session_timeout" if one.state == "idle in transaction" else ""
            return f"select pg_terminate_backend({one.pid}){after}"


def _locks(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "lock waits")
    found = facts.stats.database.lock_waits if facts.stats else None
    if found is None:
        return check.unknown(why(facts, "lock_waits"))
    if not found:
        return check.green("none", "nobody waits for a lock on our tables")
    longest = max(found, key=lambda wait: wait.waited)
    amber, red = (bound.total_seconds() for bound in _LOCK_WAITS)
    blockers = ", ".join(map(str, longest.blocked_by)) or "nobody any more"
    return check.judged(
        by_bounds(longest.waited.total_seconds(), amber=amber, red=red),
        f"{len(found)}, {span(longest.waited)} at most",
        well="locks are waited for, and got",
        ill=f"pid {longest.pid} ({longest.application}) waits for {longest.table or 'a row'}, held by {blockers}",
        do="; ".join(f"select pg_terminate_backend({pid})" for pid in longest.blocked_by) or "look again",
        value=longest.waited.total_seconds(),
    )


def _bloat(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "bloat")
    jobs = next((table for table in facts.tables or () if table.name == "jobs"), None)
    if jobs is None:
        return check.unknown(why(facts, "tables") or "there is no table of jobs")
    size = jobs.size + jobs.indexes_size
    needed = max(0, jobs.live) * ((jobs.width or _ROW_WIDTH) + _ROW_OVERHEAD)
    times = size / max(needed, 1)
    level = _beyond(size, times)
    return check.judged(
        level,
        f"{size / 1e6:,.1f} MB for {count(max(0, jobs.live), 'live job')}",
        well=f"indexes {jobs.indexes_size / 1e6:,.1f} MB of it",
        ill=f"the live jobs need about {needed / 1e6:,.1f} MB; the rest is left from a flood, and used again",
        do=f'reindex table concurrently "{facts.schema}".jobs; for the table, pause the queues and vacuum full it',
        value=size,
    )


def _beyond(size: float, times: float) -> Level:
    if size >= _BLOAT_RED[0] and times >= _BLOAT_RED[1]:
        return "red"
    return "amber" if size >= _BLOAT[0] and times >= _BLOAT[1] else "green"


def _retention(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "retention")
    if facts.parts is None or facts.stats is None or facts.today is None:
        return check.unknown(why(facts, "partitions"))
    today = facts.today
    expired = sorted((part.end, part.name) for parts in facts.parts.values() for part in parts if part.end <= today)
    lag = facts.stats.at - datetime.combine(expired[0][0], time(), UTC) if expired else timedelta(0)
    amber, red = (bound.total_seconds() for bound in _RETENTION_LAG)
    return check.judged(
        by_bounds(lag.total_seconds(), amber=amber, red=red),
        count(len(expired), "expired part"),
        well="what nobody wants any more is dropped",
        ill=f"{several([name for _, name in expired])}: expired {span(lag)} ago and still there",
        do="have a worker run: upkeep drops them every hour, unless a reader holds them (lock waits, snapshots)",
        value=lag.total_seconds(),
    )


def _parts(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "partitions ahead")
    if facts.parts is None or facts.today is None or facts.longest is None:
        return check.unknown(why(facts, "partitions"))
    today = facts.today
    kept_for = {one.table: one.kept(facts.longest) for one in PARTITIONED}
    ahead = {table: _days_ahead(facts.parts[table], today, today + kept) for table, kept in kept_for.items()}
    table, days = min(ahead.items(), key=lambda pair: pair[1])
    needed = today + kept_for[table]
    kept = count(kept_for[table].days, "day")
    return check.judged(
        by_bounds(-days, amber=1 - _PARTS_AHEAD, red=1),
        f"{days:+} days beyond {kept}",
        well=f"every day on which a job that ends now may expire has its part, {kept} on",
        ill=f"{table} lacks the part of {needed + timedelta(days=days + 1)}: what is to be kept until then cannot be "
        "written, and such jobs do not end",
        do="rowlock migrate, which makes the parts at once; and have a worker run, which makes them every hour",
        value=days,
    )


def _days_ahead(parts: Iterable[Partition], today: date, needed: date) -> int:
    """How many days beyond the one that is needed have their part; below zero if one is missing before it."""
    day = today
    for part in sorted((part for part in parts if part.detaching is False), key=lambda part: part.start):
        if part.start > day:
            break
        day = max(day, part.end)
    return min((day - needed).days, _MARGIN) - 1


def _default_parts(facts: Facts) -> Finding:
    check = HealthCheck(_GROUP, "default partition")
    if facts.tables is None:
        return check.unknown(why(facts, "tables"))
    found = [table.name for table in facts.tables if table.is_default]
    if not found:
        return check.green("none", "retention can drop every part")
    return check.ill(
        "amber",
        several(found),
        "what lies there expires never, and parts cannot be made for its days",
        do=f'drop table "{facts.schema}".{found[0]}, when nobody needs what is in it',
        value=len(found),
    )
