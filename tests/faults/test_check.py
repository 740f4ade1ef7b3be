"""The checker of the fault suite finds what it is there to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from rowlock.model.outcome import Succeeded
from rowlock.model.row import ClaimedJob
from tests.engine import Engine
from tests.faults.check import check
from tests.faults.oracle import Oracle

Db = psycopg.Connection[Any]


@dataclass
class Story:
    """One job and its worker, told statement by statement to the database, and line by line to the oracle."""

    engine: Engine
    db: Db
    oracle: Oracle

    def enqueue(self) -> str:
        self.oracle.write("sent", n=1)
        [job] = self.engine.enqueue()
        self.db.execute("""update rowlock.jobs set args = '{"n": 1}'""")
        self.oracle.write("acknowledged", n=1, job=job)
        return job

    def claim(self) -> ClaimedJob:
        [row] = self.engine.claim()
        self.oracle.write("began", n=1, job=row.id, token=row.token)
        return row

    def done(self, row: ClaimedJob) -> None:
        self.oracle.write("done", n=1, job=row.id, token=row.token)
        self.engine.settle(row, outcome=Succeeded(f'"{row.token}"'))

    def rescue(self) -> None:
        self.db.execute("update rowlock.jobs set state = 'ready', token = null, crashes = crashes + 1")
        self.tell_of_rescue()

    def tell_of_rescue(self) -> None:
        self.db.execute("insert into rowlock.events (kind, job, actor) select 'rescued', id, 'test' from rowlock.jobs")


@pytest.fixture
def story(url: str, recorded: Db, oracle: Oracle) -> Iterator[Story]:
    with closing(Engine(url)) as engine:
        yield Story(engine, recorded, oracle)


def test_a_good_life_has_no_faults(story: Story) -> None:
    story.enqueue()
    story.done(story.claim())

    assert check(story.oracle, story.db).faults == []


def test_a_job_that_is_sent_again_after_its_end_and_taken_back_has_no_faults(story: Story) -> None:
    job = story.enqueue()
    story.db.execute("create temp table copy as select * from rowlock.jobs where id = %s", [job])
    story.done(story.claim())
    with story.db.transaction():
        story.db.execute("insert into rowlock.jobs select * from copy")
        story.db.execute("delete from rowlock.jobs")

    assert check(story.oracle, story.db).faults == []


def lost(story: Story) -> None:
    story.enqueue()
    story.db.execute("delete from rowlock.jobs")


def not_ended(story: Story) -> None:
    story.enqueue()


def never_sent(story: Story) -> None:
    story.engine.enqueue()
    story.done(story.claim())


def ended_twice(story: Story) -> None:
    story.enqueue()
    story.done(story.claim())
    story.db.execute("create temp table copy as select * from rowlock.history")
    story.db.execute("update copy set expires_on = expires_on + 1")  # the key of history refuses it on the same day
    story.db.execute("insert into rowlock.history select * from copy")


def alive_again(story: Story) -> None:
    job = story.enqueue()
    story.db.execute("create temp table copy as select * from rowlock.jobs where id = %s", [job])
    story.done(story.claim())
    story.db.execute("insert into rowlock.jobs select * from copy")


def stolen(story: Story) -> None:
    story.enqueue()
    row = story.claim()
    story.db.execute("update rowlock.jobs set token = gen_random_uuid()")
    story.oracle.write("done", n=1, job=row.id, token=row.token)


def outcome_of_another(story: Story) -> None:
    story.enqueue()
    row = story.claim()
    story.oracle.write("done", n=1, job=row.id, token=row.token)
    story.engine.settle(row, outcome=Succeeded('"00000000-0000-0000-0000-000000000000"'))


def done_too_late(story: Story) -> None:
    story.enqueue()
    row = story.claim()
    story.engine.settle(row, outcome=Succeeded(f'"{row.token}"'))
    story.oracle.write("done", n=1, job=row.id, token=row.token)


def never_run(story: Story) -> None:
    story.enqueue()
    [row] = story.engine.claim()
    story.engine.settle(row, outcome=Succeeded(f'"{row.token}"'))


def miscounted_claims(story: Story) -> None:
    story.enqueue()
    row = story.claim()
    story.db.execute("update rowlock.jobs set claims = 5")
    story.done(row)


def miscounted_crashes(story: Story) -> None:
    story.enqueue()
    story.db.execute("update rowlock.jobs set crashes = 1")
    story.done(story.claim())


def not_charged(story: Story) -> None:
    story.enqueue()
    story.tell_of_rescue()
    story.done(story.claim())


def charged_to_the_living(story: Story) -> None:
    story.enqueue()
    story.claim()
    story.rescue()
    story.done(story.claim())


def not_poison(story: Story) -> None:
    story.enqueue()
    for _ in range(3):
        story.claim()
        story.rescue()
    story.oracle.write("killing", worker=1)
    story.done(story.claim())


@pytest.mark.parametrize(
    ("happens", "number"),
    [
        (lost, "I1"),
        (not_ended, "I1"),
        (never_sent, "I2"),
        (ended_twice, "I3"),
        (alive_again, "I3"),
        (alive_again, "I4"),
        (stolen, "I5"),
        (outcome_of_another, "I5"),
        (done_too_late, "I6"),
        (never_run, "I6"),
        (miscounted_claims, "I8"),
        (miscounted_crashes, "I8"),
        (not_charged, "I8"),
        (charged_to_the_living, "I8"),
        (not_poison, "I8"),
    ],
)
def test_the_checker_finds(happens: Callable[[Story], None], number: str, story: Story) -> None:
    happens(story)

    assert any(f"{number}:" in fault for fault in check(story.oracle, story.db).faults)
