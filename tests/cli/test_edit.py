"""`rowlock jobs edit`: other arguments for a job that has not started."""

from __future__ import annotations

import json
from uuid import uuid4

from tests.cli.conftest import Type
from tests.rows import Db, put


def test_a_job_gets_other_arguments(rowlock: Type, db: Db) -> None:
    job = put(db, args={"order": 7, "to": "ann"})

    edited = rowlock("jobs", "edit", str(job), "--args", '{"order": 8, "to": "ann"}', "--by", "ada", "--why", "typo")
    again = rowlock("jobs", "edit", str(job), "--arg", "order=8", "--arg", "to=ann", "--json")

    assert (edited.code, edited.out) == (0, "changed: order\n")
    assert json.loads(again.out) == {"changed": []}
    assert db.execute("select args from rowlock.jobs").fetchone() == ({"order": 8, "to": "ann"},)
    assert db.execute("select kind, actor from rowlock.events").fetchall() == [("edited", "ada")]


def test_what_cannot_be_edited_is_refused(rowlock: Type, db: Db) -> None:
    running = put(db, "running")

    refused = rowlock("jobs", "edit", str(running), "--args", "{}")
    unsaid = rowlock("jobs", "edit", str(running))
    broken = rowlock("jobs", "edit", str(running), "--args", "[1]")
    nobody = rowlock("jobs", "edit", str(uuid4()), "--args", "{}")

    assert (refused.code, "is running" in refused.err) == (1, True)
    assert (unsaid.code, broken.code) == (2, 2)
    assert (nobody.code, "no job" in nobody.err) == (3, True)
