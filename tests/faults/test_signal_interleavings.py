"""Signals in every order: against a wait that begins, ends or times out, against each other, an end and a cancel.

After each order a drain goes on until nothing moves, and the verdict is asked (tests/faults/interleaving/waiting.py):
what was told to be sent is stored, counted once and taken at most once, nobody waits beside a signal that it waits for
(the lost wake-up: T14, G4, I11), nothing comes back to life (T12), and a duplicate wakes nobody (T13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import hypothesis
import pytest
from hypothesis import strategies as st

from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.model.ids import new_id
from rowlock.model.outcome import Parked, Succeeded
from rowlock.model.row import NewJob
from rowlock.store import operations
from rowlock.store.find.windows import Match
from tests.depth import deep
from tests.faults.interleaving import acts
from tests.faults.interleaving.acts import Parts
from tests.faults.interleaving.machine import MOVES, Part, Played, drawn, held, undone
from tests.faults.interleaving.waiting import Attempt, Told, Waiting, answers, play, send, settle, work
from tests.faults.interleaving.world import World
from tests.faults.seeds import Trial

Scene = Callable[[Waiting], Parts]
EveryOrder = Callable[[Scene], list[Played]]

# About half a minute on a machine that has better things to do, too.
EXAMPLES = 150


@pytest.fixture(scope="module")
def stage(server: EmbeddedPostgres, template: str) -> Iterator[Waiting]:
    world = Waiting(disposable.create(server.url, template=template))
    yield world
    world.close()


@pytest.fixture
def every_order(stage: Waiting, trial: Trial) -> EveryOrder:
    """Plays a scene in every order; how many there were is told in the summary."""
    trial.counts.pop("seed")  # nothing is left to chance

    def play(scene: Scene) -> list[Played]:
        orders = stage.every_order(lambda world: scene(waiting(world)))
        trial.count(orders=len(orders))
        return orders

    stage.waits = 1
    return play


def waiting(world: World) -> Waiting:
    assert isinstance(world, Waiting)
    return world


def seen(orders: list[Played], *names: str) -> set[tuple[str, ...]]:
    """What these were told, in all orders."""
    return {tuple(" ".join(answers(played, name)) for name in names) for played in orders}


def again(part: Callable[[], Part]) -> Part:
    """Twice, as a settler does whose row somebody had the first time."""
    facts = yield from part()
    return facts or (yield from part())


# A wait that begins


def test_a_signal_that_comes_while_its_wait_begins_is_read_or_wakes(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun()
        return {"a": held(send(job)), "b": play(attempt)}

    orders = every_order(scene)

    assert {tuple(answers(played, "a")) for played in orders} == {("sent",)}
    for played in orders:
        everybody = answers(played, "b") + answers(played, "drain")
        assert everybody.count("took") == everybody.count("ended") == 1


def test_a_signal_that_waits_for_the_one_who_parks_wakes_the_workflow(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun()
        attempt.outcome = Parked(1, "signal")
        return {"a": held(send(job)), "b": again(lambda: held(settle(attempt)))}

    assert {facts[-1] for facts in seen(every_order(scene), "a", "drain")} == {"took ended"}


@deep
def test_two_signals_and_a_wait_that_begins(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun()
        return {"a": send(job), "b": held(send(job)), "c": play(attempt)}

    for played in every_order(scene):
        everybody = answers(played, "c") + answers(played, "drain")
        assert everybody.count("took") == everybody.count("ended") == 1
        assert {*answers(played, "a"), *answers(played, "b")} <= {"sent", "ended"}


def test_a_signal_before_the_workflow_was_ever_claimed_is_there_when_it_is(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        return {"a": held(send(world.started())), "b": work(world.worker(), passes=2)}

    orders = every_order(scene)

    assert {(answers(played, "b") + answers(played, "drain")).count("took") for played in orders} == {1}


@deep
def test_a_signal_that_is_rolled_back_wakes_nobody_and_is_nowhere(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun()
        return {"a": undone(send(job, key="k")), "b": play(attempt), "c": work(world.worker())}

    for played in every_order(scene):
        assert "took" not in answers(played, "b") + answers(played, "c") + answers(played, "drain")


def test_a_key_whose_sender_rolls_back_goes_to_the_one_who_waited(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job = world.parked()
        return {"a": undone(send(job, key="k")), "b": held(send(job, key="k"))}

    assert seen(every_order(scene), "b", "drain") == {("sent", "took ended")}


# Senders among themselves


def test_of_two_signals_with_one_key_one_is_a_duplicate_and_wakes_nobody(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job = world.parked()
        return {name: held(send(job, key="k")) for name in "ab"}

    orders = every_order(scene)

    assert seen(orders, "a", "b") == {("sent", "duplicate"), ("duplicate", "sent")}
    assert {tuple(answers(played, "drain")) for played in orders} == {("took", "ended")}


@deep
def test_a_duplicate_that_comes_while_the_first_is_taken_is_still_one(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job = world.parked()
        return {
            "a": acts.together(send(job, key="k"), send(job, key="k")),
            "b": work(world.worker()),
            "c": held(send(job, key="k")),
        }

    for played in every_order(scene):
        assert sorted(answers(played, "a") + answers(played, "c")) == ["duplicate", "duplicate", "sent"]


def test_a_resend_that_overtakes_the_first_sending_is_the_same_signal(every_order: EveryOrder) -> None:
    """The first is still under way on a connection that its sender has given up."""

    def scene(world: Waiting) -> Parts:
        job, signal = world.parked(), new_id()
        return {
            "a": held(send(job, signal=signal)),
            "b": held(send(job, signal=signal)),
            "c": work(world.worker()),
        }

    assert seen(every_order(scene), "a", "b") == {("sent", "sent")}


@deep
def test_two_waits_take_two_signals_in_the_order_in_which_these_came(every_order: EveryOrder, stage: Waiting) -> None:
    stage.waits = 2

    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun()
        return {"a": send(job), "b": held(send(job)), "c": play(attempt, waits=2)}

    for played in every_order(scene):
        facts = [fact for name in ("c", "drain") for fact in played.knows[name]]
        took = [fact.signal for fact in facts if fact.kind == "took"]
        # Whoever sends second waits for the commit of the first, if that has not come yet.
        senders = [name for name, said in played.steps if said == "signal_send"]
        assert took == [played.knows[name][0].signal for name in senders]


# A wait that times out


def test_a_signal_and_the_time_out_of_its_wait_are_one_or_the_other(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job = world.parked(timeout=timedelta(hours=1))
        world.do(acts.pass_time(timedelta(hours=2)))
        return {"a": held(send(job)), "b": work(world.worker(), passes=2)}

    for played in every_order(scene):
        everybody = answers(played, "b") + answers(played, "drain")
        assert everybody.count("took") + everybody.count("timed out") == 1
        assert everybody.count("ended") == 1
        assert answers(played, "a") == ["sent"] or "timed out" in everybody


@deep
def test_a_signal_that_comes_after_the_time_out_is_there_for_the_next_wait(
    every_order: EveryOrder, stage: Waiting
) -> None:
    stage.waits = 2

    def scene(world: Waiting) -> Parts:
        job = world.parked(timeout=timedelta(hours=1))
        world.do(acts.pass_time(timedelta(hours=2)))
        return {"a": held(send(job)), "b": work(world.worker(), passes=2, waits=2)}

    for played in every_order(scene):
        everybody = answers(played, "b") + answers(played, "drain")
        assert everybody.count("took") == 1


# An end


def test_a_signal_that_meets_the_end_is_in_its_record_or_refused(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun(key="checkout:1")
        attempt.outcome = Succeeded(None)
        return {"a": held(send(job)), "b": again(lambda: held(settle(attempt))), "c": send("checkout:1", key="k")}

    orders = every_order(scene)

    assert seen(orders, "a", "c") >= {("ended", "ended"), ("sent", "sent")}
    assert {answer for pair in seen(orders, "a", "c") for answer in pair} == {"sent", "ended"}


@deep
def test_a_signal_to_one_whose_worker_died_is_there_for_the_next(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        worker = world.worker()
        job = world.started()
        world.do(work_of(worker))
        world.do(acts.expire(worker))
        return {"a": held(send(job)), "b": acts.together(saved(), work(world.worker()))}

    def work_of(worker: str) -> Part:
        yield from acts.claim(worker)
        return []

    orders = every_order(scene)

    assert {tuple(answers(played, "a")) for played in orders} == {("sent",)}


def saved() -> Part:
    """A rescue; who was rescued is of no interest here."""
    yield from acts.rescue(lost=True)
    return []


@deep
def test_a_signal_and_an_operator_who_puts_the_workflow_back(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, attempt = world.begun(key="checkout:1")
        attempt.outcome = Succeeded(None)
        world.do(ended(attempt))
        return {"a": held(retry(job)), "b": send("checkout:1"), "c": held(send(job))}

    orders = every_order(scene)

    assert seen(orders, "b", "c") == {("ended", "ended"), ("ended", "sent"), ("sent", "ended"), ("sent", "sent")}


def ended(attempt: Attempt) -> Part:
    yield from settle(attempt)
    return []


def retry(job: str) -> Part:
    """Put it back among the live ones; its wakes begin anew, and so nothing is counted against them here."""
    days = yield "select expires_on from rowlock.history"
    found = [Match(job, "w", "succeeded", day, None) for (day,) in days]
    yield operations.retry(found, actor="somebody", why=None)
    yield "update rowlock.jobs set wakes = 0 where version is not null"
    return []


# Starting by a key (T10: the second caller was given nothing), and a stale worker (T11: its write stands)


def test_of_two_who_start_a_workflow_by_one_key_both_get_the_same(every_order: EveryOrder) -> None:
    def scene(_world: Waiting) -> Parts:
        return {name: held(start("k")) for name in "ab"}

    for played in every_order(scene):
        [one], [other] = played.knows["a"], played.knows["b"]
        assert {one.kind, other.kind} == {"enqueued", "joined"}
        assert one.job == other.job


@deep
def test_who_starts_a_workflow_again_while_it_ends_gets_the_one_that_was(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        _, attempt = world.begun(key="k")
        attempt.outcome = Succeeded(None)
        return {"a": held(start("k")), "b": again(lambda: held(settle(attempt))), "c": start("k")}

    for played in every_order(scene):
        [one], [other] = played.knows["a"], played.knows["c"]
        assert (one.kind, other.kind, one.job) == ("joined", "joined", other.job)


def start(key: str) -> Part:
    return acts.enqueue([NewJob(new_id(), "default", "w", "{}", 0, 1, key=key, version=1)])


@deep
def test_an_attempt_that_has_lost_its_job_takes_no_signal(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job, stale = world.begun()
        world.do(lost())
        [fresh] = world.claimed()
        return {"a": send(job), "b": play(stale), "c": play(fresh)}

    def lost() -> Part:
        yield "delete from rowlock.workers"
        yield from acts.rescue(lost=True)
        return []

    for played in every_order(scene):
        assert answers(played, "b") == []
        everybody = answers(played, "c") + answers(played, "drain")
        assert everybody.count("ended") == everybody.count("took") == 1


# A cancel


@pytest.mark.parametrize("state", ["parked", "begun"])
def test_a_signal_and_a_cancel_are_both_told_the_truth(every_order: EveryOrder, state: str) -> None:
    def scene(world: Waiting) -> Parts:
        job = world.parked() if state == "parked" else world.begun()[0]
        return {"a": held(send(job)), "b": cancel(job), "c": work(world.worker())}

    for played in every_order(scene):
        [told] = answers(played, "a")
        assert told in {"sent", "ended"}
        order = [step for step in played.steps if step[1] in {"transaction_commit", "signal_send"}]
        cancelled_first = order.index(("b", "transaction_commit")) < order.index(("a", "signal_send"))
        assert told == "ended" or not cancelled_first, "a cancelled workflow took a signal"


def cancel(job: str) -> Part:
    facts = yield from acts.cancel(job)
    return [Told(fact.kind, job) for fact in facts]


def test_a_cancelled_workflow_never_comes_back_however_many_signals_come(every_order: EveryOrder) -> None:
    def scene(world: Waiting) -> Parts:
        job = world.parked()
        world.do(ended_by_cancel(job))
        return {
            "a": held(send(job)),
            "b": work(world.worker()),
            "c": acts.together(send(job, key="k"), send(job, key="k")),
        }

    def ended_by_cancel(job: str) -> Part:
        yield from acts.cancel(job)
        return []

    assert {answer for row in seen(every_order(scene), "a", "c") for answer in row} == {"ended", "ended ended"}


# Drawn


Line = tuple[str, str, int]
COMMITS: dict[str, Callable[[Part], Part]] = {"at once": lambda part: part, "later": held, "never": undone}
LINES = st.tuples(
    st.sampled_from(["send", "send", "send", "work", "work", "cancel", "expire", "rescue"]),
    st.sampled_from(list(COMMITS)),
    st.integers(0, 3),
)


@deep
def test_whatever_three_sessions_do_in_whatever_order(stage: Waiting, trial: Trial) -> None:
    """Scripts and schedules that nobody thought of; hypothesis shrinks what fails to its shortest form."""
    steps = 0
    stage.waits = 2

    @hypothesis.seed(trial.counts["seed"])
    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(st.lists(st.lists(LINES, min_size=2, max_size=5), min_size=2, max_size=3), MOVES)
    def draw(scripts: list[list[Line]], moves: list[int]) -> None:
        nonlocal steps

        def scene(world: World) -> Parts:
            workflows = waiting(world)
            running, parked = workflows.begun()[0], workflows.parked(key="k")
            targets = [parked, workflows.started(), running, "k"]
            return {
                name: perform(script, targets, world.worker()) for name, script in zip("abc", scripts, strict=False)
            }

        played = stage.play(scene, drawn(moves))
        steps += len(played.steps)

    draw()
    trial.count(schedules=EXAMPLES, steps=steps)


def perform(script: list[Line], targets: list[str], worker: str) -> Part:
    facts: list[Told] = []
    for verb, commits, which in script:
        match verb:
            case "send":
                facts += yield from COMMITS[commits](send(targets[which], key=f"key {which % 2}" if which else None))
            case "work":
                facts += yield from work(worker, waits=2)
            case "cancel" if which < 3:
                facts += yield from cancel(targets[which])
            case "expire":
                yield from acts.expire(worker)
            case _:
                yield from acts.rescue(lost=True)
    return facts
