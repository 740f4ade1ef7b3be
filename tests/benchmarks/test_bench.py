"""The benchmarks run, say what they promise to say, and leave nothing behind: here, some of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from benchmarks.arena import Arena
from benchmarks.measure import Case, Effort, Target, interleave, percentile
from benchmarks.producers import without_notification
from benchmarks.wire import tapped
from rowlock.db.session import connect
from rowlock.store.query import statement
from tests.depth import deep

ROOT = Path(__file__).resolve().parents[2]
FIELDS = {"scenario", "case", "rowlock", "limit", "ratio", "unit", "limit_is", "target", "met", "rounds", "spread"}


def bench(url: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *args]
    environment = {**os.environ, "ROWLOCK_URL": url}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.usefixtures("durable")
@pytest.mark.parametrize(
    ("scenario", "size", "cases"),
    [
        pytest.param("backlog", "1000", ["delayed", "ended", "delayed-few-due"], marks=deep),
        pytest.param("drain", "300", ["slots=100", "slots=10", "results"], marks=deep),
        pytest.param("idle-fleet", "200", ["cpu", "buffers", "transactions"], marks=deep),
        pytest.param(
            "workflow", "60", ["5 steps", "40 steps", "replay 1,000", "replay 10,000", "sleeping"], marks=deep
        ),
    ],
)
def test_a_scenario_prints_one_json_object_for_each_case(
    database_url: str, scenario: str, size: str, cases: list[str]
) -> None:
    # when
    ran = bench(database_url, scenario, "--quick", "--json", "--size", size, "--rounds", "1")

    # then
    assert (ran.returncode, ran.stderr) == (0, "")
    measured = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(one["scenario"], one["case"]) for one in measured] == [(scenario, case) for case in cases]
    for one in measured:
        assert one.keys() >= FIELDS
        # So few jobs may take no time that can be measured. The ratio is rounded to four decimals.
        expected = pytest.approx(one["rowlock"] / one["limit"], rel=0.01, abs=0.0001) if one["limit"] else None
        assert one["ratio"] == expected
    with psycopg.connect(database_url) as connection:
        schemas = connection.execute("select nspname from pg_namespace where nspname like 'rowlock%'").fetchall()
    assert schemas == []


@deep
def test_a_server_that_does_not_sync_is_refused(database_url: str) -> None:
    # when
    ran = bench(database_url, "drain", "--quick")

    # then
    assert ran.returncode == 2
    assert "fsync is off" in ran.stderr


@deep
@pytest.mark.usefixtures("durable")
def test_a_database_whose_commits_do_not_wait_is_refused(database_url: str) -> None:
    # given
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f'alter database "{connection.info.dbname}" set synchronous_commit = off'.encode())

    # when
    ran = bench(database_url, "drain", "--quick")

    # then
    assert ran.returncode == 2
    assert "synchronous_commit is off" in ran.stderr


@deep
def test_two_runs_do_not_share_a_database(database_url: str) -> None:
    # given
    with psycopg.connect(database_url) as other:
        other.execute("select pg_advisory_lock(hashtextextended('rowlock_bench', 0))")

        # when
        ran = bench(database_url, "drain", "--quick")

    # then
    assert ran.returncode == 2
    assert "another benchmark is running" in ran.stderr


def test_the_wire_counts_every_statement_and_connection(database_url: str) -> None:
    # given
    arena = Arena(database_url)
    with arena.connection, tapped(arena) as wire, connect(wire.conninfo, name="test") as connection:
        before = wire.statements

        # when
        for number in range(3):
            connection.execute("select %s::int, %s::text", [number, "x" * 100_000])
        with connection.transaction():
            connection.execute("select 1")

        # then
        assert wire.statements - before == 3 + 3
        assert wire.connections == 1


def test_the_insert_without_notification_is_the_same_insert() -> None:
    # given
    whole = statement("job_put", "rowlock")

    # when
    silent = without_notification(whole)

    # then
    assert "rowlock.notify" in whole
    assert "rowlock.notify" not in silent
    assert whole.startswith(silent.removesuffix("\nfrom enqueued;\n"))


def test_rounds_take_turns_and_go_back_again() -> None:
    # given
    order: list[str] = []

    class Nobody:
        def begin(self, steps: int) -> None:
            assert steps == 4

        def step(self, words: str) -> None:
            order.append(words)

    # when
    figures = interleave({"ours": lambda: 1.0, "limit": lambda: 2.0}, rounds=2, track=Nobody())

    # then
    assert figures == {"ours": [1.0, 1.0], "limit": [2.0, 2.0]}
    assert [words.partition(": ")[2] for words in order] == ["ours", "limit", "limit", "ours"]


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (None, None),
        (Target(at_least=20, ratio_at_least=0.5), True),
        (Target(at_least=21), False),
        (Target(ratio_at_least=0.6), False),
        (Target(at_most=19), False),
        (Target(ratio_at_least=0.4, ratio_at_most=0.5), True),
        (Target(ratio_at_most=0.4), False),
    ],
)
def test_a_case_compares_medians_with_its_target(target: Target | None, met: bool | None) -> None:  # noqa: FBT001
    # given
    case = Case(
        scenario="drain",
        case="slots=100",
        unit="jobs/s",
        rowlock_rounds=[10, 20, 60],
        limit_rounds=[40, 40],
        limit_is="a bare loop",
        target=target,
    )

    # then
    assert (case.rowlock, case.limit, case.ratio, case.met) == (20, 40, 0.5, met)
    assert case.facts()["spread"] == {"rowlock": 2.5, "limit": 0.0}


def test_effort_is_full_quick_or_as_asked() -> None:
    assert Effort().sized(full=9, quick=3) == 9
    assert Effort(quick=True).sized(full=9, quick=3) == 3
    assert Effort(quick=True, size=1).sized(full=9, quick=3) == 1
    assert percentile(range(1, 101), 0.99) == 100
    assert percentile([5, 1, 3], 0.5) == 3
