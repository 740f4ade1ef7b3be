"""A signal that is committed after the settling statement has begun, and before that has locked the workflow's row.

No schedule of whole statements gets there: a policy of the test's holds the statement up between its snapshot and its
first lock, where the folding and the deleting of signals see less than the row that is locked.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from rowlock.model.outcome import Succeeded
from rowlock.store.settle import settle_workflows
from tests.engine import Engine
from tests.rows import Db
from tests.waiting import until
from tests.worker.working import one
from tests.workflow.remembering import put_workflow

DAY = timedelta(days=1)

HOLD_UP = """
create schema gate;
create function gate.pass() returns boolean language plpgsql volatile as $$
    begin
        perform pg_advisory_lock_shared(7);
        perform pg_advisory_unlock_shared(7);
        return true;
    end
$$;
create role held_up_%(pid)s;
grant usage on schema rowlock, gate to held_up_%(pid)s;
grant all on all tables in schema rowlock to held_up_%(pid)s;
grant execute on all functions in schema rowlock, gate to held_up_%(pid)s;
alter table rowlock.jobs enable row level security;
create policy gate on rowlock.jobs to held_up_%(pid)s using (gate.pass());
"""


@pytest.fixture
def worker(url: str, db: Db) -> Iterator[Engine]:
    """A worker whose statements look at no job while the gate is shut."""
    engine = Engine(url)
    role = f"held_up_{engine.connection.info.backend_pid}"
    db.execute((HOLD_UP % {"pid": engine.connection.info.backend_pid}).encode())
    engine.connection.execute(f"set role {role}".encode())
    yield engine
    engine.close()
    db.execute(f"drop owned by {role}; drop role {role}".encode())


def test_a_signal_that_slips_in_while_its_workflow_ends_is_in_its_record(worker: Engine, db: Db) -> None:
    job = put_workflow(db)
    [row] = worker.claim()
    settle = settle_workflows([(row, Succeeded(None), DAY)], told={})
    with ThreadPoolExecutor(1) as thread:
        db.execute("select pg_advisory_lock(7)")
        settling = thread.submit(worker.run, settle)
        until(lambda: one(db, "select exists (select from pg_locks where locktype = 'advisory' and not granted)"))

        answer = one(db, "select rowlock.signal(%s, 'paid')", str(job))
        db.execute("select pg_advisory_unlock(7)")
        accepted = settling.result() or worker.run(settle)

    assert answer == "sent"
    assert accepted == [row.token]
    assert one(db, "select count(*) from rowlock.signals") == 0, "a signal was left behind"
    assert one(db, "select steps -> 'signals' -> 0 ->> 'name' from rowlock.history") == "paid"
