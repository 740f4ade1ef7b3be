"""`rowlock bench`: it measures in a schema of its own, and leaves nothing."""

from __future__ import annotations

import json
import signal

import psycopg
import pytest
from psycopg.rows import TupleRow

from tests.cli.conftest import Type
from tests.cli.programs import Shop
from tests.depth import deep
from tests.waiting import until

Db = psycopg.Connection[TupleRow]


@pytest.fixture
def bare(database_url: str) -> str:
    """A database that has never heard of us."""
    return database_url


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("select nspname from pg_namespace where nspname like 'rowlock%'").fetchall()
    return {name for (name,) in found}


def test_a_bench_measures_and_leaves_nothing_behind(typed: Type, bare: str) -> None:
    in_json = typed("bench", "--url", bare, "--jobs", "40", "--json")
    in_words = typed("bench", "--url", bare, "--jobs", "40")

    figures = json.loads(in_json.out)
    assert figures.keys() == {
        "database", "jobs", "samples", "round_trip", "enqueue_one", "enqueue_many_per_second", "drain_per_second",
        "latency",
    }  # fmt: skip
    assert figures["jobs"] == 40
    assert figures["drain_per_second"] > 0
    assert 0 < figures["latency"]["p50_ms"] <= figures["latency"]["p99_ms"]
    assert in_words.code == 0, in_words.err
    assert "drain 40" in in_words.out
    assert schemas(bare) == set()


@deep
def test_a_bench_leaves_the_jobs_of_the_database_alone(typed: Type, url: str, db: Db) -> None:
    db.execute("select rowlock.enqueue('t')")

    said = typed("bench", "--url", url, "--jobs", "5", "--json")

    assert said.code == 0, said.err
    assert db.execute("select state from rowlock.jobs").fetchall() == [("ready",)]
    assert db.execute("select from rowlock.history").fetchall() == []
    assert schemas(url) == {"rowlock"}


def test_a_schema_that_the_bench_did_not_make_is_not_touched(typed: Type, bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute("create schema rowlock_bench")
        connection.execute("create table rowlock_bench.accounts as select 1 as amount")

    said = typed("bench", "--url", bare, "--jobs", "5")

    assert said.is_one_sentence, said
    assert "that this command did not make" in said.err
    with psycopg.connect(bare) as connection:
        assert connection.execute("select amount from rowlock_bench.accounts").fetchall() == [(1,)]


@deep
def test_what_a_killed_bench_has_left_is_cleared_by_the_next_one(shop: Shop, bare: str) -> None:
    killed = shop.start("bench", "--url", bare, "--jobs", "1000000")
    until(lambda: schemas(bare) == {"rowlock_bench"}, what="a bench at work")
    killed.signal(signal.SIGKILL)
    killed.ended()
    left = schemas(bare)

    until(lambda: not sessions(bare), what="the end of its sessions")
    again = shop.run("bench", "--url", bare, "--jobs", "5")

    assert left == {"rowlock_bench"}
    assert again.process.returncode == 0, again.errors
    assert schemas(bare) == set()


def test_an_interrupted_bench_drops_its_schema(shop: Shop, bare: str) -> None:
    program = shop.start("bench", "--url", bare, "--jobs", "1000000")
    until(lambda: sessions(bare) > 1, what="a bench at work")

    program.signal(signal.SIGINT)

    assert program.ended() == 130, program.errors
    assert "Traceback" not in program.errors
    assert schemas(bare) == set()


def test_two_at_once_are_refused(shop: Shop, typed: Type, bare: str) -> None:
    first = shop.start("bench", "--url", bare, "--jobs", "1000000")
    until(lambda: sessions(bare) > 1, what="a bench at work")

    second = typed("bench", "--url", bare, "--jobs", "5")
    first.signal(signal.SIGINT)

    assert second.is_one_sentence, second
    assert "in use by another process" in second.err
    assert first.ended() == 130, first.errors


def sessions(url: str) -> int:
    """How many sessions of ours there are."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            """
            select count(*) from pg_stat_activity
            where datname = current_database() and application_name like 'rowlock%'
            """
        ).fetchone()
    assert row is not None
    count: int = row[0]
    return count
