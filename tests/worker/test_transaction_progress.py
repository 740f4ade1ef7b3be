"""Progress and marks while a handler's own transaction is open: above READ COMMITTED it would be refused for them."""

from __future__ import annotations

import psycopg

from rowlock import Retry, Rowlock, current_job
from tests.waiting import auntil
from tests.worker.working import Db, ended, one, work_until


def test_nothing_is_written_to_a_job_while_a_repeatable_read_block_of_its_handler_is_open(
    app: Rowlock, db: Db, url: str
) -> None:
    said: list[str] = []

    @app.task(name="serial", retry=Retry(attempts=1))
    async def serial() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=False)
        await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        async with connection, current_job().transaction(connection):
            await connection.execute("select count(*) from rowlock.jobs")  # takes the snapshot
            current_job().progress(0.5, "half")
            said.append("serial")
            await auntil(lambda: one(db, "select progress is not null from rowlock.jobs where task = 'other'"))

    @app.task(name="other")
    async def talks() -> None:
        await auntil(lambda: said)
        current_job().progress(0.5)
        await auntil(lambda: one(db, "select count(*) = 1 from rowlock.history"))

    app.enqueue_many([serial.bind(), talks.bind()])
    work_until(app, lambda: one(db, "select count(*) = 0 from rowlock.jobs"))

    assert {row[1] for row in ended(db)} == {"succeeded"}
    assert one(db, "select progress ->> 'note' from rowlock.history where task = 'serial'") == "half"
