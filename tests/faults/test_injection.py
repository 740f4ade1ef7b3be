"""Whatever a string says, it is a string: it comes back as it was, or is refused before any SQL. S1, S19, S20, T50."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import click
import psycopg
import pytest
from psycopg.rows import TupleRow
from psycopg.types.json import Json

from rowlock import Cancel, Filter, Job, Retry, Rowlock, RowlockError, current_job
from rowlock.cli.program import program
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.db.session import connect
from rowlock.errors import JobCancelled, JobFailed, ScheduleNotFound
from tests.cli.conftest import Type, rowlock, shop, typed
from tests.depth import deep, deep_unless
from tests.faults.hostile import CORPUS
from tests.rows import put
from tests.store.snapshot import snapshot
from tests.worker.working import one, work_off, working

__all__ = ["rowlock", "shop", "typed"]

Db = psycopg.Connection[TupleRow]
Look = Callable[[Rowlock, str], object]

# An address at which nothing answers: what is refused there too is refused before any SQL.
NOWHERE = "postgresql://localhost:1/nowhere"


@pytest.fixture
def guarded(server: EmbeddedPostgres, url: str, db: Db) -> Iterator[None]:
    """After the test the schema is as it was, and the server's log knows of no broken statement."""
    log = Path(server.folder) / "server.log"
    size = log.stat().st_size
    before = everything(url, db)
    yield
    assert everything(url, db) == before
    with log.open(encoding="utf-8", errors="replace") as file:
        file.seek(size)
        said = file.read()
    broken = (
        r"ERROR:  .*(syntax error|unterminated|(column|function|operator|type) .* does not exist|malformed|pg_sleep)"
    )
    assert re.findall(broken, said) == []


def everything(url: str, db: Db) -> tuple[str, list[Any]]:
    with connect(url, name="look") as connection:
        ours = snapshot(connection, "rowlock")
    others = db.execute(
        """
        select nspname, relname, relkind from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where nspname !~ '^pg_(toast|temp)' order by 1, 2
        """
    ).fetchall()
    return ours, others


# The library, one entry for each place that takes a string; each answers what became of the string


def as_task(app: Rowlock, text: str) -> object:
    return recorded(app, app.enqueue(text)).task


def as_queue(app: Rowlock, text: str) -> object:
    return recorded(app, plain(app).using(queue=text).enqueue()).queue


def as_key(app: Rowlock, text: str) -> object:
    return recorded(app, plain(app).using(key=text).enqueue()).key


def as_held_key(app: Rowlock, text: str) -> object:
    task = plain(app)
    first, second = (task.using(key=f"{text} held").enqueue() for _ in range(2))
    return text if (first.id, second.created) == (second.id, False) else None


def as_tag(app: Rowlock, text: str) -> object:
    return recorded(app, plain(app).using(tags=[text]).enqueue()).tags[0]


def as_argument(app: Rowlock, text: str) -> object:
    [(name, value)] = recorded(app, app.enqueue("anything", **{text: text})).args.items()
    return value if name == value else None


def as_argument_inside(app: Rowlock, text: str) -> object:
    return recorded(app, app.enqueue("anything", x=[{text: [text]}])).args["x"][0][text][0]


def as_reason_of_an_operator(app: Rowlock, text: str) -> object:
    job = some_job(app)
    app.jobs.run_next(Filter(ids=[job]), by=text, why=text)
    [event] = app.jobs.events(job)
    return text if event.actor == event.details["why"] == text else None


def as_destination(app: Rowlock, text: str) -> object:
    job = some_job(app)
    app.jobs.move(Filter(ids=[job]), queue=text)
    return app.jobs.list(Filter(ids=[job])).records[0].queue


def as_paused_queue(app: Rowlock, text: str) -> object:
    app.queues.pause(text, why="w", by="b")
    names = [pause.queue for pause in app.queues.pauses()]
    return text if names == [text] and app.queues.resume(text) else None


def as_paused_task(app: Rowlock, text: str) -> object:
    app.tasks.pause(text, duration=timedelta(days=1))
    names = [pause.task for pause in app.tasks.pauses()]
    return text if names == [text] and app.tasks.resume(text) else None


def as_reason_of_a_pause(app: Rowlock, text: str) -> object:
    pause = app.queues.pause("q", why=text, by=text)
    app.queues.resume("q", why=text, by=text)
    return text if pause.why == pause.by == text else None


def as_schedule(app: Rowlock, text: str) -> object:
    app.schedules.add(text, app.call("t"), "@daily", by="b", why="w")
    names = [schedule.name for schedule in app.schedules.list()]
    tags = recorded(app, app.schedules.run_now(text)).tags
    return text if names == [app.schedules.remove(text).name] and tags == (f"schedule:{text}",) else None


def as_schedule_to_look_for(app: Rowlock, text: str) -> object:
    try:
        app.schedules.get(text)
    except ScheduleNotFound as error:
        return error.schedule
    return None


def as_what_a_schedule_says(app: Rowlock, text: str) -> object:
    if app.database.address.conninfo != NOWHERE and not app.schedules.list():
        app.schedules.add("s", app.call("t"), "@daily")
    edited = app.schedules.edit("s", queue=text, args={text: text}, by=text, why=text)
    paused = app.schedules.pause("s", by=text, why=text)
    said = (edited.queue, edited.args, paused.paused_by, paused.paused_why)
    return text if said == (text, {text: text}, text, text) else None


def as_rule_of_a_schedule(app: Rowlock, text: str) -> object:
    return app.schedules.add("s", app.call("t"), text).cron


def as_zone_of_a_schedule(app: Rowlock, text: str) -> object:
    return app.schedules.add("s", app.call("t"), "@daily", tz=text).tz


def as_queue_of_a_worker(app: Rowlock, text: str) -> object:
    app.worker(queues=[text])
    return text


def as_id(app: Rowlock, text: str) -> object:
    try:
        app.jobs.get(text)
    except RowlockError as error:
        return text if "no job" in str(error) else refuse(error)
    return None


def as_schema(app: Rowlock, text: str) -> object:
    Rowlock(app.database.address.conninfo, schema=text)
    return text


ENTRIES: dict[str, Look] = {
    "task": as_task,
    "queue": as_queue,
    "key": as_key,
    "held key": as_held_key,
    "tag": as_tag,
    "argument": as_argument,
    "argument inside": as_argument_inside,
    "by and why": as_reason_of_an_operator,
    "move": as_destination,
    "pause of a queue": as_paused_queue,
    "pause of a task": as_paused_task,
    "reason of a pause": as_reason_of_a_pause,
    "schedule": as_schedule,
    "schedule to look for": as_schedule_to_look_for,
    "what a schedule says": as_what_a_schedule_says,
    "rule of a schedule": as_rule_of_a_schedule,
    "zone of a schedule": as_zone_of_a_schedule,
    "queue of a worker": as_queue_of_a_worker,
    "id": as_id,
    "schema": as_schema,
}
# What cannot hold most strings; at all others, most of the corpus must get through.
NARROW = {"schema", "id", "rule of a schedule", "zone of a schedule"}


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("entry", deep_unless(lambda entry: entry in {"task", "key", "argument", "id"}, ENTRIES))
def test_the_library_gives_back_every_string_or_refuses_it_before_any_sql(app: Rowlock, entry: str) -> None:
    look, accepted = ENTRIES[entry], 0
    with Rowlock(NOWHERE) as nowhere:
        for text in CORPUS:
            try:
                back = look(app, text)
            except RowlockError:
                with pytest.raises(RowlockError):
                    look(nowhere, text)
            else:
                assert back == text
                accepted += 1

    assert entry in NARROW or accepted > len(CORPUS) / 2


COLUMNS = {
    "queue": "queue",
    "task": "task",
    "tag": "tags",
    "key": "key",
    "reason": "reason",
    "error": "error",
    "args": "args",
}


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("field", deep_unless(lambda field: field in {"tag", "args"}, COLUMNS))
def test_a_filter_finds_the_string_it_was_given_and_no_other(app: Rowlock, db: Db, field: str) -> None:
    there: dict[str, UUID] = {}
    for text in filter(is_storable, CORPUS):
        value = {"tag": [text], "args": {text: text}}.get(field, text)
        there[text] = put(db, "failed", **{COLUMNS[field]: value})

    found = {}
    for text in CORPUS:
        with suppress(RowlockError):
            asked = Filter(**{field: {text: text} if field == "args" else text})  # type: ignore[arg-type]
            found[text] = [record.id for record in app.jobs.list(asked).records]

    # An error is found by the last part of its name too.
    same = {
        text: [text, *(other for other in there if field == "error" and other.endswith(f".{text}"))] for text in found
    }
    assert {text: set(ids) for text, ids in found.items()} == {
        text: {there[one] for one in same[text]} for text in same
    }
    assert len(found) > len(CORPUS) / 2


@pytest.mark.usefixtures("guarded")
def test_bulk_and_borrowed_connections_carry_every_string(app: Rowlock, url: str, db: Db) -> None:
    carried = {text: uuid4().hex for text in CORPUS if accepts(partial(app.call, "t", x=text))}
    calls = [app.call("t", x=text, n=number) for text, number in carried.items()]

    app.enqueue_many(calls * 3)
    with psycopg.connect(url) as own:
        app.enqueue_many(calls, connection=own)

    rows = db.execute("select args ->> 'n', args ->> 'x', count(*) from rowlock.jobs group by 1, 2").fetchall()
    assert len(calls) * 3 >= 500, "that is no bulk"
    assert {number: (text, count) for number, text, count in rows} == {n: (text, 4) for text, n in carried.items()}


@deep
@pytest.mark.usefixtures("guarded")
def test_what_a_handler_returns_raises_and_says_comes_back_as_it_was(app: Rowlock, db: Db) -> None:
    @app.task(name="echo")
    async def echo(text: str) -> str:
        return text

    @app.task(name="fail", retry=Retry(attempts=1))
    async def fail(text: str) -> None:
        raise ValueError(text)

    @app.task(name="give_up")
    async def give_up(text: str) -> None:
        raise Cancel(text)

    @app.task(name="say")
    async def say(text: str) -> bool:
        try:
            current_job().progress(0.5, text)
        except RowlockError:
            return False
        return True

    texts = [text for text in CORPUS if accepts(partial(echo.bind, text))]
    jobs = {task.name: app.enqueue_many([task.bind(text) for text in texts]) for task in (echo, fail, give_up, say)}

    work_off(app, db)

    assert [job.result() for job in jobs[echo.name]] == texts
    for job, text in zip(jobs[fail.name], texts, strict=True):
        with pytest.raises(JobFailed) as failed:
            job.result()
        assert kept_as(text, failed.value.message)
    for job, text in zip(jobs[give_up.name], texts, strict=True):
        with pytest.raises(JobCancelled) as cancelled:
            job.result()
        assert kept_as(text, cancelled.value.reason) or not text
    for job, text in zip(jobs[say.name], texts, strict=True):
        progress = job.record().progress
        assert job.result() == (progress is not None)
        assert progress is None or progress.note == text


@pytest.mark.usefixtures("guarded")
def test_functions_in_sql_give_back_every_string_or_refuse_it(db: Db) -> None:
    fields = {"task": "task", "queue": "queue", "key": "key", "tags": "tags[1]", "args": "args ->> 'x'"}
    for text in filter(is_storable, CORPUS):
        for name, column in fields.items():
            value = {"tags": [text], "args": Json({"x": text})}.get(name, text)
            task = "" if name == "task" else "'t', "
            try:
                job = one(db, f"select rowlock.enqueue({task}{name} => %s)", value)
            except (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded):
                continue
            assert one(db, f"select {column} from rowlock.jobs where id = %s", job) == text
            one(db, "select rowlock.cancel(%s, by => %s, why => %s)", job, text, text)
            said = "select actor = details ->> 'why' and actor = %s from rowlock.events where job = %s"
            assert one(db, said, text, job)


@pytest.mark.usefixtures("guarded")
def test_a_worker_makes_nothing_of_what_others_notify(app: Rowlock, db: Db) -> None:
    @app.task(name="echo")
    async def echo(text: str) -> str:
        return text

    with working(app, queues=["default"]):
        first = echo.enqueue("before")
        assert first.result(timeout=timedelta(seconds=60)) == "before"
        channels = [channel for (channel,) in db.execute("select rowlock.channel('default')")]
        channels += [f"rowlock:{worker}" for (worker,) in db.execute("select id from rowlock.workers")]
        for text in filter(is_storable, CORPUS):
            for channel in channels:
                if len(text.encode()) < 8000:
                    db.execute("select pg_notify(%s, %s)", [channel, text])

        after = echo.enqueue("after")

        assert after.result(timeout=timedelta(seconds=60)) == "after"
    assert one(db, "select count(*) from rowlock.history") == 2


# The command line

# Commands that go on, and options that start a server of their own or make a schema.
LASTING = {("worker",), ("demo",), ("bench",), ("completion",)}
PLAIN = {"to": "2", "job_id": str(UUID(int=7)), "task": "t", "name": "q", "ids": str(UUID(int=7)), "whole": "{}"}
FLAGS = {"yes": "--yes"}


def options() -> list[tuple[tuple[str, ...], str]]:
    """Every command and each of its parameters that takes a value."""
    return [
        (path, str(parameter.name))
        for path, command in commands(program)
        if path not in LASTING
        for parameter in command.params
        if not getattr(parameter, "is_flag", False)
        and parameter.name != "embedded"
        and (path, parameter.name) != (("migrate",), "schema")
    ]


@deep
@pytest.mark.usefixtures("guarded")
def test_the_command_line_takes_every_string_as_a_string(rowlock: Type) -> None:
    corpus = iter(CORPUS * 10)
    pairs = options()
    for path, name in pairs:
        for text in (next(corpus), next(corpus)):
            said = rowlock(*path, *typed_as(path, name, text))

            # doctor has two codes of its own: something is amber, something is red.
            assert said.code in (0, 1, 2, 3, 4, 5), (path, name, text, said)
            assert "Traceback" not in said.err, (path, name, text, said.err)
            assert "psycopg" not in said.err, (path, name, text, said.err)
            assert "\x1b" not in said.out + said.err, (path, name, text)
    assert len(pairs) >= 200


def typed_as(path: tuple[str, ...], name: str, text: str) -> list[str]:
    """The arguments of a command, with a text for one of its parameters and plain ones where it needs them."""
    command = dict(commands(program))[path]
    said, positional = [], []
    for parameter in command.params:
        value = text if parameter.name == name else PLAIN.get(str(parameter.name)) if parameter.required else None
        if value is not None and isinstance(parameter, click.Argument):
            positional.append(value)
        elif value is not None:
            said.append(f"{parameter.opts[0]}={value}")
        elif parameter.name in FLAGS:
            said.append(FLAGS[parameter.name])
    return [*said, "--", *positional]


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(group, click.Group):
        yield path, group
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, (*path, name))


# Between the lines


def plain(app: Rowlock) -> Any:  # noqa: ANN401  a task without arguments
    return app.tasks.get("plain") or app.task(name="plain")(_nothing)


async def _nothing() -> None:
    return None


def some_job(app: Rowlock) -> UUID:
    """A job to do something to; where there is no database, the id of one will do."""
    return UUID(int=7) if app.database.address.conninfo == NOWHERE else plain(app).enqueue().id


def recorded(app: Rowlock, job: Job[Any]) -> Any:  # noqa: ANN401  a record, in which args are anything
    assert app is not None
    return job.record()


def refuse(error: RowlockError) -> object:
    raise error


def accepts(call: Callable[[], object]) -> bool:
    try:
        call()
    except RowlockError:
        return False
    return True


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold it at all."""
    return "\x00" not in text and text == text.encode(errors="replace").decode()


def kept_as(text: str, kept: str) -> bool:
    """A message is kept as it was, but for NUL, and not longer than a page."""
    return kept == text.replace("\x00", "\ufffd") or (len(text) > 5000 and kept.startswith(text[:1000]))
