"""Broken rows: what PostgreSQL fails at every time keeps nobody from the jobs beside it, whoever comes across it."""

from __future__ import annotations

import pytest

from rowlock import Rowlock
from tests.waiting import until
from tests.worker.working import Db, ended, one, working

SUSPECTS = "update rowlock.jobs set crashes = 2, state = 'waiting', waits_for = 'suspect' where (args ->> 'n')::int < 3"
ASIDE = "select reason from rowlock.jobs where waits_for = 'code'"


def breaks(db: Db, table: str, when: str, state: str = "XX001") -> None:
    """Every write of such a row fails, as one whose TOAST block is lost."""
    db.execute(
        f"""create function public.broken() returns trigger language plpgsql as
        $$ begin raise exception 'unexpected chunk number' using errcode = '{state}'; end $$"""
    )
    db.execute(
        f"create trigger broken before insert or update on rowlock.{table} for each row when ({when}) "
        "execute function public.broken()".encode()
    )


# Suspects


@pytest.mark.parametrize("state", ["XX001", "22P02", "XX000"])
def test_a_suspect_that_cannot_be_claimed_is_set_aside_and_all_others_run(app: Rowlock, db: Db, state: str) -> None:
    @app.task(name="quick")
    async def quick(n: int) -> None: ...

    app.enqueue_many(quick.bind(n) for n in range(7))
    db.execute(SUSPECTS)
    breaks(db, "jobs", "new.state = 'running' and new.args->>'n' = '0'", state)
    with working(app):
        until(lambda: len(ended(db)) == 6)
        aside = until(lambda: db.execute(ASIDE).fetchall())
        anew = one(db, "select restarts from rowlock.workers")

    assert {row[1] for row in ended(db)} == {"succeeded"}
    assert aside == [("PostgreSQL refuses to claim it: unexpected chunk number",)]
    assert anew == 0
