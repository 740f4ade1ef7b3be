"""Tasks: what they are called, where they are collected, and how code that cannot import one still enqueues it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import TupleRow

from rowlock import Job, Retry, Rowlock, Tasks
from rowlock.errors import InvalidArguments, InvalidOption, TaskError, UnknownTask
from rowlock.model.schedule.rule import Every
from rowlock.model.schedule.schedule import ScheduleSpec
from tests.waiting import auntil

Db = psycopg.Connection[TupleRow]

NOWHERE = "postgresql:///nothing?host=/nowhere&port=1"


def greet(name: str, *, loud: bool = False) -> str:
    """Greet somebody."""
    return name.upper() if loud else name


async def agreet(name: str) -> str:
    return name


class Desk:
    @staticmethod
    def stamp(page: int) -> int:
        return page


def stored(db: Db) -> list[tuple[str, Any]]:
    return [(task, args) for task, args in db.execute("select task, args from rowlock.jobs order by id")]


# Names


def test_a_task_is_named_by_its_module_and_function() -> None:
    tasks = Tasks()

    assert tasks.task(greet).name == f"{__name__}.greet"
    assert tasks.task(agreet).name == f"{__name__}.agreet"
    assert tasks.task(Desk.stamp).name == f"{__name__}.Desk.stamp"
    assert tasks.task(name="other")(greet).name == "other"
    assert tasks.names() == sorted([f"{__name__}.greet", f"{__name__}.agreet", f"{__name__}.Desk.stamp", "other"])


def test_a_task_keeps_what_its_function_says_of_itself() -> None:
    task = Tasks().task(greet)

    assert (task.__name__, task.__doc__, task.__wrapped__) == ("greet", "Greet somebody.", greet)
    assert task("Ada", loud=True) == "ADA"
    assert asyncio.run(Tasks().task(agreet)("Ada")) == "Ada"


def test_a_function_inside_a_function_is_refused_unless_it_is_named() -> None:
    def inner() -> None:
        return None

    with pytest.raises(TaskError, match=r"inner is defined inside a function.* give name="):
        Tasks().task(inner)
    assert Tasks().task(name="inner")(inner).name == "inner"


def test_a_function_without_a_name_is_refused_unless_it_is_given_one() -> None:
    with pytest.raises(TaskError, match="give it one with name="):
        Tasks().task(lambda: None)
    assert Tasks().task(name="nameless")(lambda: None).name == "nameless"


@pytest.mark.parametrize("name", ["a\nb", "a\tb", " a", "n" * 201, "\ud800", "a\x00"])
def test_a_name_that_cannot_be_stored_or_seen_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption):
        Tasks().task(name=name)(greet)
    with pytest.raises(InvalidOption):
        Tasks().task(name="a", aliases=[name])(greet)


def test_two_tasks_of_one_name_are_refused() -> None:
    tasks = Tasks()
    tasks.task(name="a")(greet)

    with pytest.raises(TaskError, match=r"two tasks are named 'a'; give one of them another name="):
        tasks.task(name="a")(agreet)
    with pytest.raises(TaskError, match="two tasks are named 'a'"):
        tasks.task(name="b", aliases=["a"])(agreet)
    assert [task.name for task in tasks] == ["a"]


MAIN = """
from rowlock import Rowlock
app = Rowlock()

@app.task
def work() -> None: ...

print(work.name)
"""


def test_a_task_of_a_program_is_named_as_if_it_were_imported(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    for file in ("script.py", "shop/__init__.py", "shop/__main__.py", "shop/orders.py"):
        (tmp_path / file).write_text(MAIN if file != "shop/__init__.py" else "")

    names = {
        ("script.py",): "script.work\n",
        (str(tmp_path / "script.py"),): "script.work\n",
        ("-m", "script"): "script.work\n",
        ("-m", "shop"): "shop.work\n",
        ("-m", "shop.orders"): "shop.orders.work\n",
        ("-c", "import shop.orders"): "shop.orders.work\n",
    }
    programs = [subprocess.Popen([sys.executable, *command], cwd=tmp_path, stdout=-1, text=True) for command in names]

    said = [program.communicate(timeout=60)[0] for program in programs]

    assert said == [*names.values()]


# Collections


def test_collected_tasks_belong_to_the_app_that_includes_them(app: Rowlock, db: Db) -> None:
    tasks = Tasks()
    task = tasks.task(greet)
    with pytest.raises(TaskError, match=r"belongs to no app; call app\.include"):
        task.enqueue("Ada")

    app.include(tasks)
    task.enqueue("Ada")

    assert stored(db) == [(f"{__name__}.greet", {"name": "Ada"})]


def test_including_twice_changes_nothing(app: Rowlock) -> None:
    tasks = Tasks()
    tasks.task(name="a")(greet)

    app.include(tasks)
    app.include(tasks)

    assert app.tasks.names() == ["a"]


def test_tasks_of_one_app_are_refused_by_another() -> None:
    tasks = Tasks()
    tasks.task(name="a")(greet)
    Rowlock(NOWHERE).include(tasks)

    with pytest.raises(TaskError, match="'a' is already in another app"):
        Rowlock(NOWHERE).include(tasks)


def test_including_a_name_that_is_taken_is_refused() -> None:
    app, tasks = Rowlock(NOWHERE), Tasks()
    app.task(name="a")(greet)
    tasks.task(name="a")(agreet)

    with pytest.raises(TaskError, match="two tasks are named 'a'"):
        app.include(tasks)


def test_a_collection_counts_tasks_not_names() -> None:
    tasks = Tasks()
    tasks.task(name="a", aliases=["b", "c"])(greet)

    assert len(tasks) == 1
    assert tasks.names() == ["a", "b", "c"]
    assert [task.name for task in tasks] == ["a"]


# By name


def test_a_known_task_is_enqueued_by_name_with_its_arguments_checked(app: Rowlock, db: Db) -> None:
    app.task(name="greet", queue="doors")(greet)

    job = app.enqueue("greet", "Ada", loud=True)

    assert (job.task, job.queue) == ("greet", "doors")
    assert stored(db) == [("greet", {"name": "Ada", "loud": True})]
    with pytest.raises(InvalidArguments):
        app.enqueue("greet", 5)
    with pytest.raises(InvalidArguments):
        app.enqueue("greet", "Ada", quiet=True)


def test_an_unknown_task_is_enqueued_by_name_with_named_arguments(app: Rowlock, db: Db) -> None:
    job = app.enqueue("elsewhere.greet", name="Ada", lines=[1, {"a": None}])

    assert (job.task, job.queue, job.created) == ("elsewhere.greet", "default", True)
    assert stored(db) == [("elsewhere.greet", {"name": "Ada", "lines": [1, {"a": None}]})]


def test_an_unknown_task_is_enqueued_by_name_in_a_loop(app: Rowlock, db: Db) -> None:
    async def enqueue() -> Job[Any]:
        async with app:
            return await app.aenqueue("elsewhere.greet", name="Ada")

    assert asyncio.run(enqueue()).task == "elsewhere.greet"
    assert stored(db) == [("elsewhere.greet", {"name": "Ada"})]


def test_an_unknown_task_takes_no_arguments_by_position() -> None:
    with pytest.raises(UnknownTask, match=r"'elsewhere\.greet' is not known here, so its arguments need names"):
        Rowlock(NOWHERE).enqueue("elsewhere.greet", "Ada")


def test_an_unknown_task_takes_plain_json_alone() -> None:
    for wrong in (object(), {1: 2}, (1, 2), float("nan"), "\ud800"):
        with pytest.raises(InvalidArguments):
            Rowlock(NOWHERE).enqueue("elsewhere.greet", name=wrong)


def test_an_unknown_task_whose_name_cannot_be_is_refused_before_any_sql() -> None:
    for name in ("", "a\nb", "a\tb", " a", "n" * 201, "\ud800", "a\x00"):
        with pytest.raises(InvalidOption):
            Rowlock(NOWHERE).enqueue(name)


def test_calls_by_name_go_in_bulk(app: Rowlock, db: Db) -> None:
    app.enqueue_many([app.call("elsewhere.greet", name=str(n)) for n in range(600)])

    assert stored(db) == [("elsewhere.greet", {"name": str(n)}) for n in range(600)]


def test_a_task_is_found_by_a_name_it_had_before(app: Rowlock, db: Db) -> None:
    app.task(name="new", aliases=["old", "older"])(greet)

    app.enqueue("older", "Ada")

    assert stored(db) == [("new", {"name": "Ada"})]


def test_a_worker_runs_jobs_of_a_name_the_task_had_before(app: Rowlock, url: str, db: Db) -> None:
    with Rowlock(url) as before:
        before.enqueue("old", name="Ada")
    app.task(name="new", aliases=["old"])(greet)

    async def work() -> None:
        async with app.worker():
            await auntil(lambda: not stored(db), what="the job's end")

    asyncio.run(work())

    assert db.execute("select task, state, result from rowlock.history").fetchall() == [("old", "succeeded", "Ada")]


AUDITED = """
import sys
seen = []
sys.addaudithook(lambda name, args: seen.append(name) if name.split(".")[0] in ("socket", "subprocess") else None)
import rowlock
app = rowlock.Rowlock()
app.task(name="t")(print)
app.worker
print(seen)
"""


def test_importing_rowlock_and_making_an_app_does_no_io() -> None:
    done = subprocess.run([sys.executable, "-c", AUDITED], env={}, capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("[]\n", "")


# Schedules


def report() -> int:
    return 0


async def sync(since: int = 0) -> int:
    return since


def declared(tasks: Tasks) -> dict[str, tuple[str, str, str]]:
    return {spec.name: (spec.task, str(spec.rule), spec.args) for spec in tasks.schedules()}


def test_a_schedule_over_a_function_declares_the_task_too() -> None:
    tasks = Tasks()

    task = tasks.task.every("0 9 * * MON-FRI", tz="Europe/Paris")(report)

    assert tasks.get(f"{__name__}.report") is task
    assert task() == 0
    assert declared(tasks) == {task.name: (task.name, "0 9 * * MON-FRI Europe/Paris", "{}")}


def test_a_schedule_over_a_task_keeps_its_options_and_has_its_own() -> None:
    tasks = Tasks()

    task = tasks.task.every(
        timedelta(minutes=5),
        name="sync-fast",
        jitter=timedelta(seconds=30),
        overlap="queue",
        catch_up="none",
        at_boot=True,
    )(tasks.task(queue="io", priority=2, retry=Retry(attempts=3), expires=timedelta(hours=1), name="sync")(sync))

    [spec] = tasks.schedules()
    assert task is tasks.get("sync")
    assert spec == ScheduleSpec(
        name="sync-fast",
        rule=Every(timedelta(minutes=5)),
        task="sync",
        queue="io",
        priority=2,
        attempts=3,
        expires=timedelta(hours=1),
        jitter=timedelta(seconds=30),
        overlap="queue",
        catch_up=0,
        at_boot=True,
    )


def test_a_schedule_of_a_call_has_its_arguments_and_options() -> None:
    tasks = Tasks()
    task = tasks.task(name="greet")(greet)

    call = task.using(queue="mail", priority=-1, tags=["vip"], attempts=2, expires=timedelta(minutes=1)).bind("Ada")
    call.every("0 9 * * *", tz="Europe/Paris", name="greet-ada")

    [spec] = tasks.schedules()
    assert (spec.name, spec.task, spec.args, spec.queue) == ("greet-ada", "greet", '{"name":"Ada"}', "mail")
    assert (spec.priority, spec.tags, spec.attempts, spec.expires) == (-1, ("vip",), 2, timedelta(minutes=1))
    assert (spec.overlap, spec.catch_up, spec.jitter, spec.at_boot) == ("skip", 1, timedelta(0), False)


def test_a_task_may_have_several_schedules() -> None:
    tasks = Tasks()
    task = tasks.task.every("0 18 * * *", name="evening")(
        tasks.task.every("0 9 * * *")(tasks.task(name="report")(report))
    )

    task.every(timedelta(hours=1), name="hourly")

    assert declared(tasks) == {
        "report": ("report", "0 9 * * *", "{}"),
        "evening": ("report", "0 18 * * *", "{}"),
        "hourly": ("report", "every 1:00:00", "{}"),
    }


def test_two_schedules_of_one_name_are_refused_with_both_named() -> None:
    tasks = Tasks()
    task = tasks.task.every("0 9 * * *", name="daily")(tasks.task(name="report")(report))
    other = tasks.task(name="sync")(sync)

    with pytest.raises(
        TaskError, match=r"two schedules are named 'daily', of task 'report' \(0 9 \* \* \*\) and of task "
    ):
        other.every("0 18 * * *", name="daily")
    with pytest.raises(TaskError, match="two schedules are named 'daily'"):
        task.every("0 18 * * *", name="daily")
    assert [str(spec.rule) for spec in tasks.schedules()] == ["0 9 * * *"]


def test_an_app_takes_in_the_schedules_of_what_it_includes() -> None:
    tasks, app = Tasks(), Rowlock(NOWHERE)
    task = tasks.task.every("0 9 * * *", name="daily")(tasks.task(name="report")(report))

    app.include(tasks)
    app.include(tasks)
    task.every("0 18 * * *", name="evening")

    assert [*declared(app.tasks)] == ["daily", "evening"]
    more = Tasks()
    more.task.every("@hourly", name="evening")(more.task(name="sync")(sync))
    with pytest.raises(TaskError, match="two schedules are named 'evening'"):
        app.include(more)
    with pytest.raises(TaskError, match="two schedules are named 'daily'"):
        app.task.every("@hourly", name="daily")(app.task(name="stamp")(sync))


def test_a_schedule_needs_a_name_of_its_own_where_its_tasks_will_not_do() -> None:
    tasks = Tasks()
    long, odd = tasks.task(name="n" * 91)(report), tasks.task(name="a=b")(report)

    with pytest.raises(TaskError, match=r"takes 91 bytes of UTF-8; use 1 to 90; or give name="):
        long.every("@daily")
    with pytest.raises(TaskError, match=r"contains '\*', ',' or '='.*; or give name="):
        odd.every("@daily")
    long.every("@daily", name="short")

    assert [*declared(tasks)] == ["short"]


def test_a_task_that_needs_arguments_is_not_scheduled_without_them() -> None:
    tasks = Tasks()

    with pytest.raises(InvalidArguments, match=r"greet\(\) is missing 'name'"):
        tasks.task.every("@daily")(greet)
    with pytest.raises(InvalidArguments, match=r"greet\(\) is missing 'name'"):
        tasks.task(name="greet")(greet).every("@daily")

    assert tasks.schedules() == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"key": "k"}, "a schedule takes no key=: overlap= says"),
        ({"run_at": datetime(2026, 1, 1, tzinfo=UTC)}, "a schedule takes no run_at=: its rule says when"),
        ({"delay": timedelta(0)}, "a schedule takes no delay=: its rule says when"),
        ({"connection": object()}, "a schedule takes no connection=: workers make its jobs"),
    ],
)
def test_what_the_jobs_of_a_schedule_cannot_do_is_refused(options: dict[str, Any], why: str) -> None:
    tasks = Tasks()
    task = tasks.task(name="report")(report)

    with pytest.raises(InvalidOption, match=why):
        task.using(**options).bind().every("@daily")

    assert tasks.schedules() == []


def test_a_bad_rule_is_refused_before_the_function_is_declared() -> None:
    tasks = Tasks()

    with pytest.raises(InvalidOption, match=r"hour \(field 2\) '25' is out of 0 to 23"):
        tasks.task.every("0 25 * * *")
    with pytest.raises(InvalidOption, match=r"did you mean 'Europe/Paris'\?"):
        tasks.task.every("@daily", tz="Europe/Pari")

    assert len(tasks) == 0


def test_a_task_of_which_only_the_name_is_known_has_no_schedule_here() -> None:
    app = Rowlock(NOWHERE)

    with pytest.raises(TaskError, match=r"task 'elsewhere' is not declared here.* use app\.schedules\.add"):
        app.call("elsewhere").every("@daily")


LATER = """
from __future__ import annotations
from rowlock import Tasks

tasks = Tasks()

@tasks.task.every("@daily")
def clean(mode: Mode = None) -> Mode: ...

class Mode(str): ...
"""


def test_a_schedule_is_declared_before_the_names_in_its_annotations(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(LATER)

    done = subprocess.run(
        [sys.executable, "-c", "import later; print(later.tasks.schedules()[0].args)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("{}\n", "")


def test_a_policy_that_is_no_retry_is_refused_with_what_to_write() -> None:
    with pytest.raises(InvalidOption, match=r"retry=3 must be a Retry; write retry=Retry\(attempts=3\)"):
        Tasks().task(name="t", retry=3)(greet)  # type: ignore[call-overload]
