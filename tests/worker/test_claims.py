"""How many jobs one claim brings."""

from __future__ import annotations

import pytest

from rowlock import Rowlock
from rowlock.worker import prefetch
from tests.worker.working import Db, ended, one, work_until


def test_a_claim_brings_no_more_jobs_than_their_arguments_allow(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "_LONGEST_ARGS", 10 * prefetch._GUESSED_ARGS)

    @app.task(name="t")
    async def t(text: str) -> None: ...

    app.enqueue_many(t.bind("x" * 2 * prefetch._GUESSED_ARGS) for _ in range(60))
    work_until(app, lambda: len(ended(db)) == 60, slots=50)

    claims = """select array_agg(jobs order by at)
        from (select started_at, count(*) from rowlock.history group by started_at) as claim (at, jobs)"""
    first, *others = one(db, claims)
    assert first == 10
    assert max(others) <= 5
