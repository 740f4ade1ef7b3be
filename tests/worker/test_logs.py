"""Logs: what is said of jobs, how often, and that an app's logging that raises costs nothing else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Context, Retry, Rowlock
from rowlock.model.outcome import Blocked, Cancelled, Unsettled
from rowlock.worker.logs import AttemptLog
from rowlock.worker.run import Runner
from tests.waiting import auntil
from tests.worker.test_runner import Finished, claimed, play, take
from tests.worker.working import Db, ended, one, work_off, work_until


@contextmanager
def filtered(logger: str) -> Iterator[None]:
    """As with a filter that reads what some records do not have."""

    def reads(record: logging.LogRecord) -> bool:
        return bool(vars(record)["tenant"])

    logging.getLogger(logger).addFilter(reads)
    try:
        yield
    finally:
        logging.getLogger(logger).removeFilter(reads)


def with_a_job_of_its_own(*args: Any, **kwargs: Any) -> logging.LogRecord:  # noqa: ANN401  a record factory's
    record = logging.LogRecord(*args, **kwargs)
    vars(record).update(job_id="of the factory", task="-")
    return record


async def two_that_wait_for_code(runner: Runner, _told: list[str], finished: Finished) -> None:
    take(runner, claimed(1, "nobodys"), claimed(2, "unknown"))
    await auntil(lambda: len(finished) == 2)


def test_a_filter_that_raises_costs_neither_an_outcome_nor_a_slot(capsys: pytest.CaptureFixture[str]) -> None:
    with filtered("rowlock.worker"):
        _, finished = play(two_that_wait_for_code)

    assert [token for token, _ in finished] == ["1", "2"]
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("rowlock: logging failed (KeyError: 'tenant'); not logged: nobodys 0")
    assert "unknown task 'unknown'" in second


def test_a_suspect_begins_though_a_filter_raises_at_its_warning(capsys: pytest.CaptureFixture[str]) -> None:
    async def part(runner: Runner, told: list[str], _finished: Finished) -> None:
        take(runner, claimed(1, crashes=2))
        await auntil(lambda: told == ["began"])

    with filtered("rowlock.worker"):
        play(part)

    assert "2 workers died while they ran it" in capsys.readouterr().err


def test_the_fields_of_a_job_win_over_those_of_a_record_factory(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(with_a_job_of_its_own)
    try:
        _, finished = play(two_that_wait_for_code)
    finally:
        logging.setLogRecordFactory(before)

    assert len(finished) == 2
    told = [vars(record) for record in caplog.records if "waits for code" in record.getMessage()]
    assert [(fields["job_id"][-1], fields["task"]) for fields in told] == [("1", "nobodys"), ("2", "unknown")]
    assert {fields["filename"] for fields in told} == {"logs.py"}


def test_a_filter_that_raises_costs_no_try_of_a_step(app: Rowlock, db: Db, capsys: pytest.CaptureFixture[str]) -> None:
    tried = list[int]()

    def flaky() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise ConnectionError
        return len(tried)

    @app.workflow(name="w", retry=Retry(attempts=2, base=timedelta(0)))
    async def w(ctx: Context) -> int:
        return await ctx.step(flaky)

    w.enqueue()
    with filtered("rowlock.workflow"):
        work_until(app, lambda: ended(db))

    assert one(db, "select result from rowlock.history") == 2
    assert "step flaky failed in try 1 of 2" in capsys.readouterr().err


GROUPED: dict[str, tuple[Unsettled, str]] = {
    "code": (Blocked("code", "unknown task 'w'"), "WARNING 49 more jobs of w wait for code: unknown task 'w'"),
    "pause": (Blocked("pause", "task 'w' is paused"), "INFO 49 more jobs of w wait: task 'w' is paused"),
    "expired": (Cancelled("expired"), "INFO 49 more jobs of w are cancelled: expired"),
}


@pytest.mark.parametrize("why", GROUPED)
def test_jobs_to_which_the_same_happens_are_a_line_and_then_a_count(why: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rowlock.worker")
    outcome, count = GROUPED[why]

    async def fifty() -> None:
        log = AttemptLog()
        for number in range(50):
            log(claimed(number, "w"), outcome, 0.0, None)
        log.close()

    asyncio.run(fifty())

    said = [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
    assert len(said) == 2
    assert said[1] == count


def test_of_more_reasons_than_anybody_reads_only_the_jobs_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rowlock.worker")

    async def many() -> None:
        log = AttemptLog()
        for number in range(103):
            log(claimed(number, f"task {number}"), Cancelled("expired"), 0.0, None)
        log.close()

    asyncio.run(many())

    assert len(caplog.messages) == 101
    assert caplog.messages[-1] == "3 more jobs of other tasks are cancelled: expired"


def test_jobs_of_a_paused_task_are_a_line_and_then_a_count(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(name="nightly")
    async def nightly() -> None: ...

    app.tasks.pause("nightly")
    app.enqueue_many([nightly.bind() for _ in range(20)])
    caplog.set_level("INFO", "rowlock.worker")

    work_off(app, db)

    assert [said for said in caplog.messages if "'nightly' is paused" in said][1:] == [
        "19 more jobs of nightly wait: task 'nightly' is paused"
    ]


def test_a_job_that_a_rescue_fails_is_an_error_with_its_fields(
    app: Rowlock, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    job = app.enqueue("kills")
    db.execute(
        "update rowlock.jobs set state = 'running', token = gen_random_uuid(), worker = gen_random_uuid(), "
        "claims = 3, crashes = 2, begun = true"
    )

    work_until(app, lambda: ended(db))

    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage().startswith(f"kills {job.id} failed for good: 3 workers died while they ran it")
    fields = {"job_id": str(job.id), "task": "kills", "queue": "default", "attempt": 1}
    assert vars(record).items() >= (fields | {"outcome": "failed", "reason": "poison"}).items()
