"""Interleavings: every order in which the shipped statements of two or three sessions can meet.

After each order the invariants are held against the flight recorder (tests/faults/interleaving/verdict.py), everything
is drained, and they are held once more. What a test asserts here is what its own pair is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import hypothesis
import pytest
from hypothesis import strategies as st

from rowlock.db.embedded import disposable
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.model.outcome import Cancelled, Ended, Returned
from rowlock.model.row import ClaimedJob
from tests.depth import deep
from tests.faults.interleaving import acts
from tests.faults.interleaving.acts import DAY, FAILED, RETRIED, Fact, Parts
from tests.faults.interleaving.machine import MOVES, Part, Played, drawn, held, undone
from tests.faults.interleaving.player import COMMITS, LENGTH, REPERTOIRE, Line, Player, Troupe
from tests.faults.interleaving.world import Scene, World
from tests.faults.seeds import Trial

EveryOrder = Callable[[Scene], list[Played]]

# About half a minute on a machine that has better things to do, too.
EXAMPLES = 300
LINES = st.builds(Line, st.sampled_from(REPERTOIRE), st.sampled_from(list(COMMITS)), st.integers(0, 3))


@pytest.fixture(scope="module")
def stage(server: EmbeddedPostgres, template: str) -> Iterator[World]:
    """A database for all of these tests: each schedule begins by emptying it."""
    world = World(disposable.create(server.url, template=template))
    yield world
    world.close()


@pytest.fixture
def every_order(stage: World, trial: Trial) -> EveryOrder:
    """Plays a scene in every order; how many there were is told in the summary."""

    trial.counts.pop("seed")  # nothing is left to chance

    def play(scene: Scene) -> list[Played]:
        orders = stage.every_order(scene)
        trial.count(orders=len(orders))
        return orders

    return play


def happened(played: Played) -> Counter[str]:
    """How often each kind of thing happened."""
    return Counter(fact.kind for facts in played.knows.values() for fact in facts)


def outcomes(orders: Sequence[Played]) -> set[frozenset[tuple[str, int]]]:
    """Everything that can happen."""
    return {frozenset(happened(played).items()) for played in orders}


def either(*kinds: str) -> set[frozenset[tuple[str, int]]]:
    """One of these happens once, and nothing else; each of them in some order."""
    return {frozenset({(kind, 1)}) for kind in kinds}


# Claim


def test_two_claims_never_share_a_job(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued(3)
        return {name: held(acts.claim(world.worker(), 2)) for name in "ab"}

    orders = every_order(scene)

    assert {happened(played)["claimed"] for played in orders} == {3}


@deep
def test_three_claims_never_share_a_job(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued(3)
        return {name: held(acts.claim(world.worker(), 2)) for name in "abc"}

    orders = every_order(scene)

    assert {happened(played)["claimed"] for played in orders} == {3}


def test_a_claim_that_is_rolled_back_leaves_its_jobs_to_others(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued(2)
        b = world.worker()
        return {
            "a": undone(acts.claim(world.worker(), 2)),
            "b": acts.together(acts.claim(b, 2), acts.claim(b, 2)),
        }

    orders = every_order(scene)

    assert {happened(played)["claimed"] for played in orders} == {0, 2}


def test_a_claim_whose_worker_is_buried_meanwhile_is_rescued_all_the_same(every_order: EveryOrder) -> None:
    """The sweeper cannot see a claim that is not committed yet, and buries a worker that seems to hold nothing."""

    def scene(world: World) -> Parts:
        world.enqueued(2)
        worker = world.worker()
        return {
            "a": held(acts.claim(worker, 2)),
            "b": acts.together(acts.expire(worker), acts.rescue()),
        }

    orders = every_order(scene)

    assert {(happened(played)["claimed"], happened(played)["rescued"]) for played in orders} == {(0, 0), (2, 0), (2, 2)}


def test_a_late_commit_below_the_floor_is_claimed_once_and_from_the_bottom(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()

        def keep_claiming() -> Part:
            facts: list[Fact] = yield from acts.enqueue(acts.new())
            first = yield from acts.claim(worker)
            floor = max(acts.claimed(first), key=lambda row: (row.run_at, row.id))
            above = yield from acts.claim(worker, above=floor)
            below = yield from acts.claim(worker)
            return [*facts, *first, *above, *below]

        return {"a": held(acts.enqueue(acts.new())), "b": keep_claiming()}

    orders = every_order(scene)

    assert {happened(played)["claimed"] for played in orders} == {1, 2}


def test_a_paused_queue_is_not_claimed_from_once_the_pause_is_committed(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued()
        return {"a": held(acts.pause("queue", "default")), "b": held(acts.claim(world.worker()))}

    for played in every_order(scene):
        paused_first = played.steps.index(("a", "transaction_commit")) < played.steps.index(("b", "job_claim"))

        assert happened(played)["claimed"] == (not paused_first)


def test_a_job_of_a_paused_task_is_claimed_with_that_word(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued()
        return {"a": held(acts.pause("task", "t")), "b": held(acts.claim(world.worker()))}

    for played in every_order(scene):
        paused_first = played.steps.index(("a", "transaction_commit")) < played.steps.index(("b", "job_claim"))

        assert [row.paused for row in acts.claimed(played.knows["b"])] == [paused_first]


def test_a_job_is_moved_or_claimed(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [job] = world.enqueued()
        return {"a": held(acts.move(job.id, "other")), "b": held(acts.claim(world.worker()))}

    orders = every_order(scene)

    assert outcomes(orders) == either("moved", "claimed")


# Settle, return, hand back


def test_a_stale_attempt_settles_nothing_whatever_travels_with_it(every_order: EveryOrder) -> None:
    """Attempts (J, T1), stale, and (K, T2) in one batch, while J's fresh attempt is being settled."""

    def scene(world: World) -> Parts:
        worker = world.worker()
        [stale, other] = world.running(worker, 2)
        world.do(acts.give_back([stale]))
        [fresh] = acts.claimed(world.do(acts.claim(worker)))
        assert fresh.id == stale.id
        return {"a": held(acts.settle([stale, other], FAILED)), "b": held(acts.settle([fresh]))}

    for played in every_order(scene):
        assert [fact.spent for fact in played.knows["a"]] == [True]
        assert [fact.spent for fact in played.knows["b"]] == [False]


def test_two_attempts_of_one_job_in_one_batch_end_it_by_the_fresh_one(every_order: EveryOrder) -> None:
    """Ids and tokens that were matched apart would pair the fresh token with what the stale attempt came to."""

    def scene(world: World) -> Parts:
        worker = world.worker()
        [stale] = world.running(worker)
        world.do(acts.give_back([stale]))
        [fresh] = acts.claimed(world.do(acts.claim(worker)))
        batch: list[tuple[ClaimedJob, Ended]] = [(stale, FAILED), (fresh, acts.SUCCEEDED)]
        return {"a": held(acts.settle_each(batch)), "b": held(acts.say_progress(fresh, 0.5))}

    for played in every_order(scene):
        assert [fact.spent for fact in played.knows["a"]] in ([], [False])


def test_a_stale_attempt_returns_nothing_while_the_fresh_one_settles(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()
        [stale] = world.running(worker)
        world.do(acts.give_back([stale]))
        [fresh] = acts.claimed(world.do(acts.claim(worker)))
        return {"a": held(acts.give_back([stale], RETRIED)), "b": held(acts.settle([fresh]))}

    orders = every_order(scene)

    assert outcomes(orders) == either("settled")


def test_an_attempt_settled_twice_over_counts_once(every_order: EveryOrder) -> None:
    """A settle whose answer was lost is sent again, while the first is still under way."""

    def scene(world: World) -> Parts:
        rows = world.running(world.worker(), 2)
        return {"a": held(acts.settle(rows)), "b": held(acts.settle(rows))}

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("settled", 2)})}


@pytest.mark.parametrize("take_back", [acts.hand_back, acts.disown])
def test_a_job_is_handed_back_or_settled(every_order: EveryOrder, take_back: Callable[[str], Part]) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()
        rows = world.running(worker)
        return {"a": held(acts.settle(rows)), "b": held(take_back(worker))}

    orders = every_order(scene)

    assert outcomes(orders) == either("settled", "handed back")


def test_a_claim_that_commits_after_the_look_for_it_is_left_to_the_next_look(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued()
        worker = world.worker()
        return {"a": held(acts.claim(worker)), "b": acts.together(acts.disown(worker), acts.disown(worker))}

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("claimed", 1)}), frozenset({("claimed", 1), ("handed back", 1)})}


@deep
def test_what_is_handed_back_twice_over_is_not_taken_from_its_next_owner(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker, heir = world.worker(), world.worker()
        world.running(worker)
        return {
            "a": acts.disown(worker),
            "b": acts.disown(worker),
            "c": held(acts.claim(heir)),
        }

    for played in every_order(scene):
        assert happened(played)["handed back"] == 1


def test_progress_is_written_by_the_owner_only(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [row] = world.running(world.worker())
        heir = world.worker()
        return {
            "a": acts.together(held(acts.say_progress(row, 0.5)), acts.say_progress(row, 0.9)),
            "b": acts.together(held(acts.give_back([row])), acts.claim(heir)),
        }

    orders = every_order(scene)

    assert {happened(played)["progressed"] for played in orders} == {0, 1, 2}


def test_progress_does_not_hold_up_a_settle_for_good(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        rows = world.running(world.worker())
        return {
            "a": held(acts.say_progress(rows[0], 0.5)),
            "b": acts.together(acts.settle(rows), acts.settle(rows)),
        }

    for played in every_order(scene):
        last = played.steps[-1] == ("b", "job_settle")

        assert happened(played)["settled"] == 1 or not last


# Rescue


def test_an_orphan_is_settled_or_rescued(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()
        rows = world.running(worker)
        world.do(acts.expire(worker))
        return {"a": held(acts.settle(rows)), "b": acts.rescue()}

    orders = every_order(scene)

    assert outcomes(orders) == either("settled", "rescued")


def test_a_zombie_settles_nothing_after_its_job_was_rescued_and_claimed(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker, heir = world.worker(), world.worker()
        rows = world.running(worker)
        world.do(acts.expire(worker))

        def inherit() -> Part:
            rescued = yield from acts.rescue()
            mine = yield from acts.claim(heir)
            settled = (yield from acts.settle(acts.claimed(mine), FAILED)) if mine else []
            return [*rescued, *mine, *settled]

        return {"a": held(acts.settle(rows)), "b": inherit()}

    for played in every_order(scene):
        assert happened(played)["settled"] == 1


def test_two_sweepers_count_one_crash(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()
        world.running(worker, 2)
        world.do(acts.expire(worker))
        return {"a": acts.rescue(), "b": acts.rescue(lost=True)}

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("rescued", 2)})}


@deep
def test_a_lease_is_renewed_or_its_jobs_are_rescued(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()
        world.running(worker)
        world.do(acts.cut(worker, to=DAY / 2))
        return {"a": held(acts.renew(worker)), "b": acts.rescue(), "c": acts.pass_time(0.75 * DAY)}

    orders = every_order(scene)

    assert outcomes(orders) == either("renewed", "rescued")


@deep
def test_a_worker_that_comes_back_is_pardoned_once(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker, heir = world.worker(), world.worker()
        world.running(worker)
        world.do(acts.expire(worker))
        return {
            "a": acts.together(acts.hand_back(worker), acts.pardon(worker), acts.pardon(worker)),
            "b": acts.rescue(),
            "c": acts.claim(heir),
        }

    orders = every_order(scene)

    assert {happened(played)["pardoned"] for played in orders} == {0, 1}


# Cancel


def test_a_running_job_ends_as_cancelled_or_it_is_too_late(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [row] = world.running(world.worker())
        return {"a": acts.cancel(row.id), "b": acts.together(held(acts.settle([row])), acts.settle([row]))}

    orders = every_order(scene)

    assert outcomes(orders) == {
        frozenset({("cancelled", 1), ("settled", 1)}),
        frozenset({("too late", 1), ("settled", 1)}),
        frozenset({("cancelled", 1)}),  # the settler found it locked both times, and would come again
    }


def test_a_ready_job_that_is_cancelled_is_not_claimed(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [job] = world.enqueued(key="k")
        worker = world.worker()

        def work() -> Part:
            mine = yield from held(acts.claim(worker))
            settled = (yield from acts.settle(acts.claimed(mine))) if mine else []
            return [*mine, *settled]

        return {"a": acts.cancel(job.id), "b": work()}

    orders = every_order(scene)

    assert {(happened(played)["cancelled"], happened(played)["claimed"]) for played in orders} == {
        (1, 0),
        (1, 1),
        (0, 1),
    }


@pytest.mark.parametrize("outcome", [RETRIED, acts.HANDED_BACK], ids=["retried", "handed back"])
def test_a_job_that_is_cancelled_does_not_come_back(every_order: EveryOrder, outcome: Returned) -> None:
    def scene(world: World) -> Parts:
        [row] = world.running(world.worker(), key="k")
        heir = world.worker()
        return {
            "a": acts.cancel(row.id),
            "b": acts.together(held(acts.give_back([row], outcome)), acts.claim(heir)),
        }

    orders = every_order(scene)

    assert {happened(played)["cancelled"] for played in orders} == {1}


@deep
def test_a_job_is_cancelled_whatever_its_worker_hands_back(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker = world.worker()
        [row] = world.running(worker)
        return {"a": acts.cancel(row.id), "b": held(acts.hand_back(worker)), "c": acts.disown(worker)}

    orders = every_order(scene)

    assert {happened(played)["cancelled"] for played in orders} == {1}


@deep
def test_a_job_is_cancelled_whoever_rescues_it(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        worker, heir = world.worker(), world.worker()
        [row] = world.running(worker)
        world.do(acts.expire(worker))
        return {"a": acts.cancel(row.id), "b": acts.together(acts.rescue(), acts.claim(heir))}

    orders = every_order(scene)

    assert {happened(played)["cancelled"] for played in orders} == {1}


def test_two_who_cancel_get_the_same_answer(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [row] = world.running(world.worker())
        return {"a": acts.cancel(row.id), "b": acts.cancel(row.id), "c": acts.settle([row], Cancelled("asked"))}

    for played in every_order(scene):
        assert happened(played)["cancelled"] == 2


@deep
def test_operators_and_settlers_lock_in_one_order(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        rows = world.running(world.worker(), 2)
        return {
            "a": held(acts.cancel_many([row.id for row in reversed(rows)])),
            "b": held(acts.settle(rows)),
            "c": acts.cancel(rows[0].id),
        }

    every_order(scene)


# Expiry


@deep
def test_a_job_that_has_expired_is_claimed_or_ended_by_upkeep(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued(key="k")
        world.do(acts.spoil())
        return {"a": held(acts.sweep_expired()), "b": held(acts.claim(world.worker())), "c": acts.sweep_expired()}

    orders = every_order(scene)

    assert outcomes(orders) == either("claimed", "expired")


def test_a_job_that_expires_while_it_runs_is_left_alone_until_it_is_back(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [row] = world.running(world.worker(), key="k")
        world.do(acts.spoil())
        return {
            "a": held(acts.give_back([row], RETRIED)),
            "b": acts.together(acts.sweep_expired(), acts.sweep_expired()),
        }

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("returned", 1)}), frozenset({("returned", 1), ("expired", 1)})}


def test_a_job_that_expires_and_is_cancelled_ends_once(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [job] = world.enqueued(key="k")
        world.do(acts.spoil())
        return {"a": acts.cancel(job.id), "b": held(acts.sweep_expired())}

    orders = every_order(scene)

    assert {happened(played)["cancelled"] for played in orders} == {1}  # whoever ended it


def test_a_key_is_free_when_its_job_has_expired(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.enqueued(key="k")
        world.do(acts.spoil())
        return {"a": held(acts.sweep_expired()), "b": held(acts.enqueue(acts.new(key="k")))}

    orders = every_order(scene)

    assert outcomes(orders) == {
        frozenset({("expired", 1), ("enqueued", 1)}),
        frozenset({("expired", 1), ("joined", 1)}),
    }


# Keys


def test_a_key_that_two_want_goes_to_one(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        return {name: held(acts.enqueue(acts.new(key="k"))) for name in "ab"}

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("enqueued", 1), ("joined", 1)})}


def test_a_key_whose_winner_rolls_back_goes_to_the_one_who_waited(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        return {"a": undone(acts.enqueue(acts.new(key="k"))), "b": held(acts.enqueue(acts.new(key="k")))}

    orders = every_order(scene)

    assert outcomes(orders) == either("enqueued")


@deep
def test_a_key_whose_winner_rolls_back_goes_to_one_of_two_who_waited(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        return {
            "a": undone(acts.enqueue(acts.new(key="k"))),
            "b": held(acts.enqueue(acts.new(key="k"))),
            "c": held(acts.enqueue(acts.new(key="k"))),
        }

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("enqueued", 1), ("joined", 1)})}


def test_keys_taken_many_at_once_never_deadlock(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        names = ["k1", "k2", "k3"]
        return {
            "a": held(acts.enqueue([job for key in names for job in acts.new(key=key)])),
            "b": held(acts.enqueue([job for key in reversed(names) for job in acts.new(key=key)])),
        }

    orders = every_order(scene)

    assert outcomes(orders) == {frozenset({("enqueued", 3), ("joined", 3)})}


@pytest.mark.parametrize("end", [acts.settle, acts.give_back], ids=["settled", "handed back"])
def test_a_key_is_held_until_its_job_has_ended(every_order: EveryOrder, end: Callable[..., Part]) -> None:
    def scene(world: World) -> Parts:
        rows = world.running(world.worker(), key="k")
        return {"a": held(end(rows)), "b": held(acts.enqueue(acts.new(key="k")))}

    orders = every_order(scene)

    assert {happened(played)["enqueued"] + happened(played)["joined"] for played in orders} == {1}


def test_a_key_is_free_when_its_job_is_cancelled(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        [job] = world.enqueued(key="k")
        return {"a": acts.cancel(job.id), "b": held(acts.enqueue(acts.new(key="k")))}

    orders = every_order(scene)

    assert outcomes(orders) == {
        frozenset({("cancelled", 1), ("enqueued", 1)}),
        frozenset({("cancelled", 1), ("joined", 1)}),
    }


# Schedules


def test_a_slot_that_two_fire_has_one_job(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.schedule())
        return {"a": acts.fire(), "b": acts.fire()}

    orders = every_order(scene)

    assert outcomes(orders) == either("enqueued")


@deep
def test_a_slot_whose_firing_is_rolled_back_is_fired_by_the_next_who_looks(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.schedule())
        return {"a": acts.fire(undone=True), "b": acts.together(acts.fire(), acts.fire())}

    orders = every_order(scene)

    assert outcomes(orders) == either("enqueued") | {frozenset()}  # b came both times while a was at it


def test_a_run_at_boot_that_two_make_is_one(every_order: EveryOrder) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.schedule(at_boot=True))
        return {"a": acts.fire(at_boot=True), "b": acts.fire(at_boot=True)}

    orders = every_order(scene)

    assert outcomes(orders) == either("enqueued")


@pytest.mark.parametrize(
    "what",
    [
        "update rowlock.schedules set paused_at = rowlock.now(), paused_by = 'me'",
        "update rowlock.schedules set every = '1 day', next_at = next_at + interval '1 day'",
        "delete from rowlock.schedules",
    ],
    ids=["paused", "edited", "removed"],
)
def test_nothing_is_fired_of_a_schedule_once_its_change_is_committed(every_order: EveryOrder, what: str) -> None:
    def scene(world: World) -> Parts:
        world.do(acts.schedule())
        return {"a": acts.fire(), "b": acts.change(what)}

    orders = every_order(scene)

    for played in orders:
        steps = list(played.steps)
        changed = steps.index(("b", "transaction_commit"))
        fired = steps.index(("a", "schedule_fire")) if ("a", "schedule_fire") in steps else len(steps)
        assert happened(played)["enqueued"] == 0 or fired < changed
    assert outcomes(orders) == {frozenset({("changed", 1)}), frozenset({("changed", 1), ("enqueued", 1)})}


# Resend


@pytest.mark.parametrize("key", [None, "k"])
def test_a_resend_never_runs_a_job_again_that_has_ended(every_order: EveryOrder, key: str | None) -> None:
    def scene(world: World) -> Parts:
        made = world.enqueued(key=key)
        worker = world.worker()

        def work() -> Part:
            mine = yield from acts.claim(worker)
            settled = yield from held(acts.settle(acts.claimed(mine)))
            again = yield from acts.claim(worker)
            return [*mine, *settled, *again]

        return {"a": held(acts.enqueue(made, resend=True)), "b": work()}

    for played in every_order(scene):
        assert happened(played)["claimed"] == 1


def test_a_resend_overtakes_the_first_sending(every_order: EveryOrder) -> None:
    """The first is still under way on a connection that its sender has given up."""

    def scene(world: World) -> Parts:
        made = acts.new(2)
        worker = world.worker()
        return {
            "a": held(acts.enqueue(made)),
            "b": held(acts.enqueue(made, resend=True)),
            "c": acts.together(acts.claim(worker)),
        }

    orders = every_order(scene)

    assert {happened(played)["claimed"] for played in orders} == {0, 2}


# Drawn


@deep
def test_whatever_three_sessions_do_in_whatever_order(stage: World, trial: Trial) -> None:
    """Scripts and schedules that nobody thought of; hypothesis shrinks what fails to its shortest form."""
    steps = 0

    @hypothesis.seed(trial.counts["seed"])
    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(st.lists(st.lists(LINES, min_size=LENGTH[0], max_size=LENGTH[1]), min_size=2, max_size=3), MOVES)
    def play(scripts: list[list[Line]], moves: list[int]) -> None:
        nonlocal steps

        def scene(world: World) -> Parts:
            troupe = Troupe(world, [job.id for job in world.enqueued()])
            return {name: Player(troupe, script).play() for name, script in zip("abc", scripts, strict=False)}

        played = stage.play(scene, drawn(moves))
        steps += len(played.steps)

    play()
    trial.count(schedules=EXAMPLES, steps=steps)
