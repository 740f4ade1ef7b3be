"""Keys in every order: what becomes of a holder, and of the next caller's arguments, while others claim, end and ask.

As in test_interleavings.py, every order is judged (I17: one live job for a key, and one for each who was told so),
drained, and judged again. What is asserted here is that nobody's arguments are lost, and none run twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from rowlock import Key
from rowlock.model.row import NewJob
from tests.depth import deep
from tests.faults.interleaving import acts
from tests.faults.interleaving.acts import DAY, Parts
from tests.faults.interleaving.machine import EveryOrder, Part, Played, held, undone
from tests.faults.interleaving.world import Scene, World
from tests.faults.seeds import Trial
from tests.faults.test_interleavings import happened, stage

__all__ = ["stage"]  # a fixture

REPLACE = Key("k", taken="replace")
DEBOUNCE = Key("k", taken="debounce", at_most=DAY)
DAILY = Key("k", period=DAY)
SENT = pytest.mark.parametrize("key", ["k", DAILY, REPLACE], ids=["plain", "period", "replace"])
REPLACING = pytest.mark.parametrize("key", [REPLACE, DEBOUNCE], ids=lambda key: key.taken)

# An order that was played, and the arguments of all jobs that ran.
Seen = tuple[Played, list[str]]
InEveryOrder = Callable[[Scene], list[Seen]]


@pytest.fixture
def in_every_order(stage: World, trial: Trial) -> InEveryOrder:
    """Plays a scene in every order; how many there were is told in the summary."""
    trial.counts.pop("seed")  # nothing is left to chance

    def play(scene: Scene) -> list[Seen]:
        seen = [(stage.play(scene, choose), stage.ran()) for choose in EveryOrder()]
        trial.count(orders=len(seen))
        return seen

    return play


def asked(key: str | Key, args: str) -> list[NewJob]:
    return acts.new(key=key, args=args)


def told(played: Played, who: str) -> str:
    """What a caller with one job was told."""
    [fact] = played.knows[who]
    return str(fact.kind)


def working(worker: str) -> Part:
    """Claim, and end what was claimed."""
    mine = yield from held(acts.claim(worker))
    settled = (yield from acts.settle(acts.claimed(mine))) if mine else []
    return [*mine, *settled]


# One who changes the holder


@REPLACING
def test_a_job_is_changed_before_it_is_claimed_or_another_is_made(in_every_order: InEveryOrder, key: Key) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        return {"a": held(acts.enqueue(asked(key, "2"))), "b": working(world.worker())}

    seen = in_every_order(scene)

    assert {(told(played, "a"), *ran) for played, ran in seen} == {("joined", "2"), ("enqueued", "1", "2")}


@REPLACING
def test_a_job_that_ends_meanwhile_makes_way(in_every_order: InEveryOrder, key: Key) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        rows = acts.claimed(world.do(acts.claim(world.worker())))
        return {
            "a": held(acts.enqueue(asked(key, "2"))),
            "b": acts.together(held(acts.settle(rows)), acts.settle(rows)),
        }

    seen = in_every_order(scene)

    assert {(told(played, "a"), *ran) for played, ran in seen} == {("enqueued", "1", "2")}


def test_a_job_with_a_period_that_ends_meanwhile_makes_way_for_new_arguments(in_every_order: InEveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked(DAILY, "1")))
        rows = acts.claimed(world.do(acts.claim(world.worker())))
        return {"a": held(acts.enqueue(asked(REPLACE, "2"))), "b": held(acts.settle(rows))}

    seen = in_every_order(scene)

    assert {(told(played, "a"), *ran) for played, ran in seen} == {("enqueued", "1", "2")}


@pytest.mark.parametrize("way", ["handed back", "rescued"])
def test_a_job_that_comes_back_goes_on_without_the_key_or_is_changed(in_every_order: InEveryOrder, way: str) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        worker = world.worker()
        rows = acts.claimed(world.do(acts.claim(worker)))
        world.do(acts.expire(worker))
        return {
            "a": held(acts.enqueue(asked(REPLACE, "2"))),
            "b": held(acts.give_back(rows)) if way == "handed back" else acts.rescue(),
        }

    seen = in_every_order(scene)

    assert {(told(played, "a"), *ran) for played, ran in seen} == {("joined", "2"), ("enqueued", "1", "2")}


@REPLACING
def test_a_job_that_is_cancelled_meanwhile_is_changed_in_vain_or_makes_way(
    in_every_order: InEveryOrder, key: Key
) -> None:
    def scene(world: World) -> Parts:
        [job] = asked("k", "1")
        world.do(acts.enqueue([job]))
        return {"a": held(acts.enqueue(asked(key, "2"))), "b": acts.cancel(job.id)}

    seen = in_every_order(scene)

    assert {(told(played, "a"), *ran) for played, ran in seen} == {("joined",), ("enqueued", "2")}


# Two who change it


@REPLACING
def test_of_two_who_change_a_job_the_last_is_right(in_every_order: InEveryOrder, key: Key) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        return {"a": held(acts.enqueue(asked(key, "2"))), "b": held(acts.enqueue(asked(key, "3")))}

    seen = in_every_order(scene)

    for played, ran in seen:
        last = [who for who, said in played.steps if said == "transaction_commit"][-1]
        assert ran == ["2" if last == "a" else "3"]
        assert happened(played)["joined"] == 2


def test_of_two_who_want_the_key_of_a_running_job_one_gets_it_and_the_other_changes_that(
    in_every_order: InEveryOrder,
) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        world.do(acts.claim(world.worker()))
        return {"a": held(acts.enqueue(asked(REPLACE, "2"))), "b": held(acts.enqueue(asked(REPLACE, "3")))}

    seen = in_every_order(scene)

    assert {tuple(sorted(ran)) for _, ran in seen} == {("1", "2"), ("1", "3")}
    assert {happened(played)["enqueued"] for played, _ in seen} == {1}


def test_two_who_change_a_job_lose_nothing_to_one_who_claims_it(in_every_order: InEveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        return {
            "a": acts.enqueue(asked(REPLACE, "2")),
            "b": acts.enqueue(asked(REPLACE, "3")),
            "c": acts.together(held(acts.claim(world.worker()))),
        }

    seen = in_every_order(scene)

    for played, ran in seen:
        last = [who for who, said in played.steps if said == "job_put_keyed"][-1]
        assert ("2" if last == "a" else "3") in ran
        assert len(ran) == 1 + happened(played)["enqueued"]


@deep
def test_callers_who_change_many_and_those_who_end_them_never_deadlock(in_every_order: InEveryOrder) -> None:
    def scene(world: World) -> Parts:
        names = ["k1", "k2", "k3"]
        for name in names:
            world.do(acts.enqueue(asked(name, "1")))
        rows = acts.claimed(world.do(acts.claim(world.worker(), 2)))
        changed = [Key(name, taken="replace") for name in names]
        return {
            "a": held(acts.enqueue([job for key in changed for job in asked(key, "2")])),
            "b": held(acts.enqueue([job for key in reversed(changed) for job in asked(key, "3")])),
            "c": acts.together(held(acts.settle(rows)), acts.settle(rows)),
        }

    for played, ran in in_every_order(scene):
        assert (happened(played)["enqueued"], happened(played)["joined"]) == (2, 4)
        assert len(ran) == 3 + 2


@deep
def test_callers_with_many_keys_of_which_one_becomes_free_meanwhile_never_deadlock(
    in_every_order: InEveryOrder,
) -> None:
    """What was held when a caller asked for it is free when it looks for the holder, and others want it, too."""

    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k1", "1")))
        rows = acts.claimed(world.do(acts.claim(world.worker())))
        return {
            "a": held(acts.enqueue([*asked("k1", "2"), *asked("k2", "2")])),
            "b": held(acts.enqueue([*asked("k1", "3"), *asked("k2", "3")])),
            "c": acts.settle(rows),
        }

    for played, ran in in_every_order(scene):
        assert happened(played)["enqueued"] + happened(played)["joined"] == 4
        assert len(ran) == 1 + happened(played)["enqueued"]


# A period that is over


@pytest.mark.parametrize("key", [DAILY, "k", REPLACE], ids=["period", "plain", "replace"])
def test_a_key_whose_period_is_over_goes_to_one_of_two(in_every_order: InEveryOrder, key: str | Key) -> None:
    def scene(world: World) -> Parts:
        _end_in_its_period(world)
        world.do(acts.pass_time(2 * DAY))
        return {"a": held(acts.enqueue(asked(DAILY, "2"))), "b": held(acts.enqueue(asked(key, "3")))}

    for played, ran in in_every_order(scene):
        assert (happened(played)["enqueued"], happened(played)["joined"]) == (1, 1)
        assert len(ran) == 2


def test_a_key_whose_period_ends_meanwhile_is_held_or_free(in_every_order: InEveryOrder) -> None:
    def scene(world: World) -> Parts:
        _end_in_its_period(world)
        return {
            "a": held(acts.enqueue(asked(DAILY, "2"))),
            "b": held(acts.enqueue(asked(DAILY, "3"))),
            "c": acts.pass_time(2 * DAY),
        }

    seen = in_every_order(scene)

    assert {happened(played)["enqueued"] for played, _ in seen} == {0, 1}


def test_a_sweep_takes_no_key_from_whoever_gets_it(in_every_order: InEveryOrder) -> None:
    def scene(world: World) -> Parts:
        _end_in_its_period(world)
        world.do(acts.pass_time(2 * DAY))
        return {"a": held(acts.enqueue(asked(DAILY, "2"))), "b": held(acts.sweep_keys()), "c": acts.sweep_keys()}

    for played, _ in in_every_order(scene):
        assert told(played, "a") == "enqueued"


def test_a_sweep_and_the_end_of_a_job_free_its_key(in_every_order: InEveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked(DAILY, "1")))
        rows = acts.claimed(world.do(acts.claim(world.worker())))
        world.do(acts.pass_time(2 * DAY))
        return {
            "a": held(acts.sweep_keys()),
            "b": held(acts.settle(rows)),
            "c": acts.enqueue(asked(DAILY, "2")),
        }

    for played, ran in in_every_order(scene):
        assert len(ran) == 1 + happened(played)["enqueued"]


def _end_in_its_period(world: World) -> None:
    world.do(acts.enqueue(asked(DAILY, "1")))
    world.do(acts.settle(acts.claimed(world.do(acts.claim(world.worker())))))


# A winner that rolls back


@pytest.mark.parametrize(
    "key",
    [Key("k", taken="skip"), Key("k", taken="return", period=timedelta(hours=1)), REPLACE, DEBOUNCE],
    ids=lambda key: key.taken,
)
def test_a_key_whose_winner_rolls_back_goes_to_the_one_who_waited(in_every_order: InEveryOrder, key: Key) -> None:
    def scene(_world: World) -> Parts:
        return {"a": undone(acts.enqueue(asked(key, "1"))), "b": held(acts.enqueue(asked(key, "2")))}

    for played, ran in in_every_order(scene):
        assert told(played, "b") == "enqueued"
        assert ran == ["2"]


@REPLACING
def test_a_change_that_is_rolled_back_is_none(in_every_order: InEveryOrder, key: Key) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.enqueue(asked("k", "1")))
        return {"a": undone(acts.enqueue(asked(key, "2"))), "b": working(world.worker())}

    for _, ran in in_every_order(scene):
        assert ran == ["1"]


# Sent again


@SENT
def test_a_job_that_is_sent_again_is_made_once_whoever_has_its_key_by_now(
    in_every_order: InEveryOrder, key: str | Key
) -> None:
    """It is ready, runs, lives without its key, or has ended: whatever the resend meets, it was made before."""

    def scene(world: World) -> Parts:
        made = asked(key, "1")
        world.do(acts.enqueue(made))
        return {
            "a": _only_joined(held(acts.enqueue(made, resend=True))),
            "b": working(world.worker()),
            "c": acts.enqueue(asked(REPLACE, "2")),
        }

    for played, ran in in_every_order(scene):
        assert played.knows["a"] == []
        assert ran in (["1"], ["2"], ["1", "2"])
        assert "2" in ran or told(played, "c") == "joined"


@SENT
def test_a_job_that_is_sent_again_while_the_first_sending_is_under_way_is_made_once(
    in_every_order: InEveryOrder, key: str | Key
) -> None:
    def scene(_world: World) -> Parts:
        made = asked(key, "1")
        return {"a": held(acts.enqueue(made)), "b": _only_joined(held(acts.enqueue(made, resend=True)))}

    for played, ran in in_every_order(scene):
        assert (told(played, "a"), played.knows["b"], ran) == ("enqueued", [], ["1"])


def _only_joined(part: Part) -> Part:
    """It is one enqueue, of which the first sending has told."""
    facts = yield from part
    return [fact for fact in facts if fact.kind == "joined"]
