"""Workflows as they are declared: what may be one, versions side by side, and migrations from one to the next."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rowlock import Context, Keep, Key, Retry, Rowlock, Task, Tasks, Workflow
from rowlock.errors import InvalidArguments, InvalidOption, TaskError

if TYPE_CHECKING:
    from decimal import Decimal

HOUR = timedelta(hours=1)
State = dict[str, Any]


async def checkout(ctx: Context, order: int, *, gift: bool = False) -> str:
    """Sell what is in the basket."""
    return f"{order} {gift} {ctx.version}"


async def checkout_anew(ctx: Context, order: int, lines: list[str]) -> str:
    return f"{order} {lines} {ctx.version}"


async def unannotated(ctx, order):  # type: ignore[no-untyped-def]  # as users may write them
    return order


async def with_a_name_to_come(ctx: Context, amount: Decimal) -> None: ...


def sync(ctx: Context, order: int) -> None: ...


async def nothing() -> None: ...


async def rest(*orders: int) -> None: ...


async def named(*, ctx: Context) -> None: ...


async def without_context(order: int) -> None: ...


def named_as(version: int) -> Any:  # noqa: ANN401  a migration that can be told from others
    def carry(state: State) -> State:
        return {**state, "carried": [*state.get("carried", []), version]}

    return carry


def carried(tasks: Tasks, name: str) -> tuple[int | None, State]:
    """The version that runs jobs of this name, and what becomes of their state."""
    handler = tasks.handlers()[name]
    state: State = {}
    for carry in handler.carries:
        state = carry(state)
    return handler.version, state


# What may be one


def test_a_workflow_is_declared_with_what_a_task_has_and_a_version() -> None:
    tasks = Tasks()

    workflow = tasks.workflow(
        version=3, name="shop.checkout", queue="orders", priority=2, retry=Retry(attempts=4), keep=Keep(failed=HOUR),
        expires=HOUR, aliases=["checkout"],
    )(checkout)  # fmt: skip

    assert isinstance(workflow, Workflow)
    assert (workflow.name, workflow.version, workflow.handler.version) == ("shop.checkout", 3, 3)
    assert workflow.handler.is_workflow
    assert (workflow.spec.queue, workflow.spec.priority, workflow.spec.keep) == ("orders", 2, Keep(failed=HOUR))
    assert (workflow.spec.retry, workflow.spec.expires, workflow.spec.aliases) == (
        Retry(attempts=4),
        HOUR,
        ("checkout",),
    )
    assert (workflow.__name__, workflow.__doc__) == ("checkout", "Sell what is in the basket.")
    assert repr(workflow) == "<Workflow shop.checkout version 3>"


def test_a_workflow_is_of_version_1_and_named_after_its_function_unless_it_says_otherwise() -> None:
    workflow = Tasks().workflow(checkout)

    assert (workflow.name, workflow.version) == (f"{__name__}.checkout", 1)
    assert workflow.spec.retry == Retry()


def test_a_plain_task_is_of_no_version() -> None:
    task = Tasks().task(nothing)

    assert (task.handler.version, task.handler.is_workflow) == (None, False)


def test_its_steps_are_retried_and_not_the_whole() -> None:
    workflow = Tasks().workflow(retry=Retry(attempts=7))(checkout)

    assert (workflow.spec.attempts, workflow.bind(1).to_job("").attempts) == (1, 1)


def test_its_arguments_are_those_after_its_context() -> None:
    workflow = Tasks().workflow(checkout)

    assert workflow.bind(7, gift=True).args == '{"order":7,"gift":true}'
    assert workflow.handler.arguments.decode('{"order": 7}') == ((), {"order": 7})
    with pytest.raises(InvalidArguments, match="order"):
        workflow.bind()  # type: ignore[call-arg]
    with pytest.raises(InvalidArguments, match="has no argument 'ctx'"):
        workflow.bind(7, ctx=None)  # type: ignore[call-arg]


@pytest.mark.parametrize("function", [nothing, rest, named, without_context])
def test_a_function_without_a_context_in_front_is_no_workflow(function: Any) -> None:  # noqa: ANN401  of any shape
    with pytest.raises(TaskError, match=r"has no parameter for its context.* async def \w+\(ctx: Context, …\)"):
        Tasks().workflow(function)


def test_a_sync_function_is_no_workflow() -> None:
    with pytest.raises(TaskError, match=r"sync is not an async function, .* what it calls in its steps may be sync"):
        Tasks().workflow(sync)  # type: ignore[arg-type]


def test_what_a_context_is_need_not_be_said() -> None:
    assert Tasks().workflow(unannotated).bind(7).args == '{"order":7}'


def test_annotations_may_use_names_that_are_not_there_yet_but_a_worker_needs_them() -> None:
    workflow = Tasks().workflow(with_a_name_to_come)

    with pytest.raises(TaskError, match="Decimal"):
        workflow.prepare()


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0, None, 10**10])
def test_a_version_is_a_number_from_1_on(version: Any) -> None:  # noqa: ANN401  and not any other value
    with pytest.raises(InvalidOption, match="version="):
        Tasks().workflow(version=version)(checkout)


@pytest.mark.parametrize("option", ["timeout", "breaker", "history"])
def test_what_is_a_steps_to_say_or_would_forget_is_no_option(option: str) -> None:
    options: Any = {option: None}

    with pytest.raises(TypeError, match=option):
        Tasks().workflow(**options)


def test_a_workflow_cannot_be_called_like_a_function() -> None:
    workflow = Tasks().workflow(checkout)

    with pytest.raises(TaskError, match=r"runs in a worker.*: enqueue it"):
        workflow(7)
    assert workflow.function is checkout


# What one call may say


def test_attempts_are_refused_for_steps_have_theirs() -> None:
    workflow = Tasks().workflow(name="w")(checkout)

    with pytest.raises(InvalidOption, match=r"attempts=3 is for tasks, and 'w' is a workflow: its steps are retried"):
        workflow.using(attempts=3)


@pytest.mark.parametrize(
    "key", [Key("k", period=HOUR), Key("k", taken="replace"), Key("k", taken="debounce", at_most=HOUR)]
)
def test_a_key_that_is_held_for_less_than_the_record_or_replaces_is_refused(key: Key) -> None:
    workflow = Tasks().workflow(name="w")(checkout)

    with pytest.raises(InvalidOption, match=r"is for tasks, and 'w' is a workflow: its key is held from its start"):
        workflow.using(key=key, delay=timedelta(0))


@pytest.mark.parametrize("key", ["k", Key("k"), Key("k", taken="raise"), Key("k", taken="skip")])
def test_other_keys_are_welcome(key: str | Key) -> None:
    workflow = Tasks().workflow(name="w")(checkout)

    assert workflow.using(key=key).bind(7).to_job("").key == "k"


# Side by side


def test_versions_of_one_name_live_side_by_side() -> None:
    tasks = Tasks()
    second = tasks.workflow(name="w", version=2)(checkout_anew)
    first = tasks.workflow(name="w", version=1)(checkout)

    assert tasks.get("w") is second
    assert (tasks.get("w", 1), tasks.get("w", 2), tasks.get("w", 3)) == (first, second, None)
    assert (tasks.handler("w"), tasks.handler("w", 1)) == (second.handler, first.handler)
    assert tasks.names() == ["w"]
    assert (len(tasks), {*tasks}) == (2, {first, second})


def test_a_worker_knows_tasks_by_name_and_workflows_by_name_and_version() -> None:
    tasks = Tasks()
    task = tasks.task(name="t", aliases=["old t"])(nothing)
    first = tasks.workflow(name="w")(checkout)
    second = tasks.workflow(name="w", version=2, aliases=["old w"])(checkout_anew)

    assert tasks.handlers() == {
        "t": task.handler,
        "old t": task.handler,
        "w@1": first.handler,
        "w@2": second.handler,
        "old w@2": second.handler,
    }
    assert tasks.names() == ["old t", "old w", "t", "w"]


def test_two_workflows_of_one_name_and_version_are_refused() -> None:
    tasks = Tasks()
    tasks.workflow(name="w", aliases=["old"])(checkout)

    with pytest.raises(
        TaskError, match=r"two workflows are named 'w' and of version 1; give the newer one the next ver"
    ):
        tasks.workflow(name="w")(checkout_anew)
    with pytest.raises(TaskError, match="two workflows are named 'old' and of version 1"):
        tasks.workflow(name="other", aliases=["old"])(checkout_anew)
    assert len(tasks) == 1


def test_a_task_and_a_workflow_cannot_share_a_name() -> None:
    tasks = Tasks()
    tasks.workflow(name="w")(checkout)
    tasks.task(name="t")(nothing)

    with pytest.raises(TaskError, match=r"a task and a workflow are named 'w'; give one of them another name="):
        tasks.task(name="w")(nothing)
    with pytest.raises(TaskError, match="a task and a workflow are named 't'"):
        tasks.workflow(name="t", version=2)(checkout)
    assert tasks.names() == ["t", "w"]


def test_a_name_with_an_at_sign_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"'w@2' contains '@', which parts a workflow's name from its version"):
        Tasks().workflow(name="w@2")(checkout)
    with pytest.raises(InvalidOption, match="contains '@'"):
        Tasks().task(name="t", aliases=["mail@home"])(nothing)


def test_an_app_takes_in_every_version() -> None:
    tasks, app = Tasks(), Rowlock("postgresql:///nothing")
    first = tasks.workflow(name="w")(checkout)
    second = tasks.workflow(name="w", version=2)(checkout_anew)

    app.include(tasks)
    third = app.workflow(name="w", version=3)(checkout)

    assert {*app.load()} == {"w@1", "w@2", "w@3"}
    assert [one.app for one in (first, second, third)] == [app, app, app]


def test_a_call_by_name_is_of_the_highest_version_or_of_the_one_that_is_named() -> None:
    app = Rowlock("postgresql:///nothing")
    app.workflow(name="w")(checkout)
    app.workflow(name="w", version=2)(checkout_anew)

    assert app.call("w", 7, ["tea"]).to_job("").version == 2
    assert app.call("w@1", 7).to_job("").version == 1
    assert app.call("elsewhere@4", x=1).to_job("")[2:6] == ("elsewhere", '{"x":1}', 0, 1)
    assert app.call("elsewhere@4").to_job("").version == 4
    assert app.call("elsewhere").to_job("").version is None


@pytest.mark.parametrize("name", ["w@0", "w@", "@1", "w@x", "w@1@2", "w@²"])
def test_a_call_by_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match=r"version=0|contains '@'"):
        Rowlock("postgresql:///nothing").call(name)


# From one version to the next


def test_a_migration_is_kept_with_the_version_that_it_leads_to() -> None:
    workflow = Tasks().workflow(name="w", version=2)(checkout)

    @workflow.migration(1)
    def carry(state: State) -> State:
        return {**state, "gift": False}

    assert workflow.migrations == {1: carry}
    assert carry({"order": 7}) == {"order": 7, "gift": False}


def test_a_worker_without_the_code_of_a_version_knows_it_by_a_migration() -> None:
    tasks = Tasks()
    tasks.workflow(name="w", version=2, aliases=["old"])(checkout).migration(1)(named_as(1))

    assert {*tasks.handlers()} == {"w@1", "w@2", "old@1", "old@2"}
    assert carried(tasks, "w@1") == carried(tasks, "old@1") == (2, {"carried": [1]})
    assert carried(tasks, "w@2") == (2, {})


def test_a_chain_of_migrations_is_followed_to_its_end() -> None:
    tasks = Tasks()
    tasks.workflow(name="w", version=3)(checkout).migration(2)(named_as(2))
    tasks.workflow(name="w", version=2)(checkout).migration(1)(named_as(1))
    tasks.workflow(name="w", version=4)(checkout)

    assert carried(tasks, "w@1") == (3, {"carried": [1, 2]})
    assert [carried(tasks, f"w@{version}") for version in (2, 3, 4)] == [(2, {}), (3, {}), (4, {})]


def test_of_two_ways_to_the_same_version_the_shorter_is_gone() -> None:
    tasks = Tasks()
    tasks.workflow(name="w", version=2)(checkout).migration(1)(named_as(1))
    third = tasks.workflow(name="w", version=3)(checkout)
    third.migration(1)(named_as(13))
    third.migration(2)(named_as(2))

    assert carried(tasks, "w@1") == (3, {"carried": [13]})


def test_a_version_whose_code_is_there_is_run_by_it() -> None:
    tasks = Tasks()
    first = tasks.workflow(name="w")(checkout)
    tasks.workflow(name="w", version=2)(checkout_anew).migration(1)(named_as(1))

    assert tasks.handlers()["w@1"] is first.handler


@pytest.mark.parametrize("version", [2, 3])
def test_a_migration_from_no_earlier_version_is_refused(version: int) -> None:
    workflow = Tasks().workflow(name="w", version=2)(checkout)

    with pytest.raises(TaskError, match=r"leads to version 2 of workflow 'w': it must come from an earlier one"):
        workflow.migration(version)


def test_a_second_migration_from_a_version_is_refused() -> None:
    workflow = Tasks().workflow(name="w", version=2)(checkout)
    workflow.migration(1)(named_as(1))

    with pytest.raises(TaskError, match=r"two migrations from version 1 to 2; remove one"):
        workflow.migration(1)(named_as(1))


def test_a_migration_that_does_io_is_refused() -> None:
    workflow = Tasks().workflow(name="w", version=2)(checkout)

    async def carry(state: State) -> State:
        return state

    with pytest.raises(TaskError, match=r"a plain function of the state"):
        workflow.migration(1)(carry)  # type: ignore[type-var]


@pytest.mark.parametrize("version", [0, "1", None])
def test_a_migration_from_what_is_no_version_is_refused(version: Any) -> None:  # noqa: ANN401  any other value
    workflow = Tasks().workflow(name="w", version=2)(checkout)

    with pytest.raises(InvalidOption, match="version="):
        workflow.migration(version)


# Schedules


def test_a_workflow_can_be_scheduled_and_its_schedule_says_which_version() -> None:
    tasks = Tasks()
    workflow = tasks.task.every("@daily")(tasks.workflow(name="w", version=2)(with_defaults))
    workflow.using(queue="slow").bind(order=7).every("@hourly", name="seven")

    daily, seven = tasks.schedules()[1], tasks.schedules()[0]
    assert isinstance(workflow, Workflow)
    assert (daily.name, daily.task, daily.version, daily.attempts) == ("w", "w", 2, 1)
    assert (seven.queue, seven.args, seven.version) == ("slow", '{"order":7}', 2)


async def with_defaults(ctx: Context, order: int = 1) -> None: ...


def test_two_versions_cannot_both_have_the_schedule() -> None:
    tasks = Tasks()
    tasks.workflow(name="w")(with_defaults).every("@daily")

    with pytest.raises(TaskError, match="two schedules are named 'w'"):
        tasks.workflow(name="w", version=2)(with_defaults).every("@daily")


def test_tasks_are_as_they_were() -> None:
    task: Task[[], None] = Tasks().task(retry=Retry(attempts=7))(nothing)

    assert (task.spec.attempts, task.using(attempts=3).bind().to_job("").attempts) == (7, 3)
