"""Where to look: queues in order, floors that rise, and looks from the bottom that are rationed by what they cost."""

from __future__ import annotations

import pytest

from rowlock import Rowlock
from rowlock.errors import InvalidOption
from rowlock.model.ids import NIL
from rowlock.model.row import ClaimedJob
from rowlock.store.claim import PRIORITIES, Lane
from rowlock.worker.prefetch import PrefetchSize
from rowlock.worker.queues import Floors, Queues, in_order
from tests.rows import Db
from tests.worker.working import one, work_until


def row(queue: str, priority: int, run_at: str, job_id: str) -> ClaimedJob:
    return ClaimedJob(job_id, "token", "t", "{}", queue, priority, run_at, 0, 0, 1, 10, None, False, None, None)


def test_a_floor_is_the_furthest_place_claimed_in_its_lane() -> None:
    floors = Floors()

    floors.raise_to([row("a", 0, "2026-01-02", "1"), row("a", 0, "2026-01-01", "9"), row("a", 3, "2026-01-03", "5")])

    lanes = {lane[:2]: lane for lane in floors.lanes(["a", "b"], below=False)}
    assert lanes["a", 0] == Lane("a", 0, "2026-01-02", "1")
    assert lanes["a", 3] == Lane("a", 3, "2026-01-03", "5")
    assert lanes["b", 0] == Lane("b", 0)
    assert list(lanes) == [(queue, priority) for queue in ("a", "b") for priority in PRIORITIES]


def test_times_compare_as_text_with_and_without_fractions() -> None:
    floors = Floors()

    floors.raise_to([row("a", 0, "2026-01-01 00:00:01.5+00", "1"), row("a", 0, "2026-01-01 00:00:01+00", "2")])
    floors.raise_to([row("a", 0, "2026-01-01 00:00:01.49+00", "3")])

    assert floors.lanes(["a"], below=False)[PRIORITIES.index(0)].run_at == "2026-01-01 00:00:01.5+00"


def test_a_look_from_the_bottom_is_rationed_by_what_it_cost() -> None:
    floors = Floors()
    assert floors.until_look_below(100.0, idle=True) == 0

    floors.looked_below(100.0, took=0.001)
    assert floors.until_look_below(100.0, idle=True) == pytest.approx(0.01)
    assert floors.until_look_below(100.0, idle=False) == pytest.approx(0.02)
    assert floors.until_look_below(101.0, idle=False) == 0


def test_an_idle_worker_looks_below_at_least_once_a_second_and_a_busy_one_at_least_every_ten() -> None:
    floors = Floors()

    floors.looked_below(200.0, took=0.6)

    assert floors.until_look_below(200.0, idle=True) == 1.0
    assert floors.until_look_below(200.0, idle=False) == 10.0


def test_a_hint_that_something_lies_below_is_followed_at_once() -> None:
    floors = Floors()
    floors.looked_below(100.0, took=0.9)

    floors.look_below_soon()

    assert floors.until_look_below(100.0, idle=False) == 0


def test_looks_that_stay_dear_become_rare_until_they_are_cheap_again() -> None:
    floors = Floors()
    floors.looked_below(100.0, took=0.02)
    once = floors.are_dear

    floors.looked_below(200.0, took=0.02)
    twice, pause = floors.are_dear, floors.until_look_below(200.0, idle=True)
    floors.look_below_soon()
    asked = floors.until_look_below(200.0, idle=True)
    floors.looked_for_all(0.01)  # by the thread that renews
    others = floors.until_look_below(200.0, idle=True)
    floors.looked_below(300.0, took=0.001)

    assert (once, twice, floors.are_dear) == (False, True, False)
    assert pause == pytest.approx(2_000.0)
    assert [asked, others] == pytest.approx([0.4, 0.2])


def test_what_others_say_lowers_a_floor_for_one_look_and_raises_none() -> None:
    floors = Floors()
    floors.raise_to([row("a", 0, "2026-01-02", "1")])
    floors.looked_below(100.0, took=0.6)

    floors.hint("a", 0, "2026-01-03", "2")
    above = floors.until_look_below(100.0, idle=True)
    floors.hint("a", 0, "2026-01-01", "2")
    lowered = floors.lanes(["a"], below=True)[PRIORITIES.index(0)]
    below = floors.until_look_below(100.0, idle=True)
    floors.looked_below(101.0, took=0.001)

    assert above == pytest.approx(1.0)
    assert below == 0
    assert lowered == Lane("a", 0, "2026-01-01", NIL)
    assert floors.lanes(["a"], below=False)[PRIORITIES.index(0)].run_at == "2026-01-02"


def test_what_others_say_is_followed_until_a_claim_finds_no_more_there() -> None:
    floors = Floors()
    floors.raise_to([row("a", 0, "2026-01-05", "1"), row("b", 0, "2026-01-05", "1")])
    floors.hint("a", 0, "2026-01-01", "2")
    floors.hint("b", 0, "2026-01-01", "3")

    floors.looked_below(100.0, 0.001, [row("a", 0, "2026-01-02", "4"), row("a", 0, "2026-01-03", "5")])
    followed = {lane[:2]: lane[2:] for lane in floors.lanes(["a", "b"], below=True)}
    floors.looked_below(100.0, 0.001, [row("a", 0, "2026-01-06", "6")])

    assert followed["a", 0] == ("2026-01-03", "5")
    assert followed["b", 0] == ("2026-01-05", "1")
    assert not floors.is_hinted


def test_a_job_below_the_floors_of_all_is_found_by_the_one_that_looks_for_them(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowlock.worker.queues._DEAR", 0.0)
    monkeypatch.setattr("rowlock.worker.queues._DEAR_PAUSE", (1e9, 1e9))
    monkeypatch.setattr("rowlock.worker.upkeep._BELOW_FACTOR", 1)

    @app.task(name="t")
    async def t() -> None: ...

    app.enqueue("t")

    def is_done() -> bool:
        if one(db, "select count(*) in (1, 2) from rowlock.history") and not one(
            db, "select count(*) from rowlock.jobs"
        ):
            db.execute(
                "insert into rowlock.jobs (id, queue, task, attempts, run_at, created_at, args)"
                " values (rowlock.uuid7(), 'default', 't', 1, now() - interval '1 hour', now(), '{}')"
            )
        return bool(one(db, "select count(*) >= 3 from rowlock.history"))

    work_until(app, is_done)


def test_strict_queues_keep_their_order_and_weighted_ones_lead_in_proportion() -> None:
    assert Queues(["b", "a"]).order() == ("b", "a")

    weighted = Queues({"often": 3, "seldom": 1})
    leads = [weighted.order()[0] for _ in range(4_000)]

    assert 0.7 < leads.count("often") / len(leads) < 0.8


@pytest.mark.parametrize("queues", [[], ["a", "a"], ["a,b"], [""], {"a": 0}, {"a": -1}])
def test_queues_that_make_no_sense_are_refused(queues: list[str] | dict[str, float]) -> None:
    with pytest.raises(InvalidOption):
        Queues(queues)


def test_claimed_jobs_are_put_into_the_order_of_their_lanes() -> None:
    lanes = Floors().lanes(["b", "a"], below=True)
    rows = [row("a", 4, "1", "1"), row("b", -1, "1", "2"), row("b", 2, "2", "4"), row("b", 2, "2", "3")]

    in_order(rows, lanes)

    assert [job.id for job in rows] == ["3", "4", "2", "1"]


def test_prefetch_grows_while_handlers_are_shorter_than_the_round_trip() -> None:
    prefetch = PrefetchSize(slots=10)
    sizes = []
    for _ in range(40):
        for _ in range(10):
            prefetch.ran(0.000_01)
        prefetch.learn(round_trip=0.005, full=True)
        sizes.append(prefetch.size)

    assert sizes[0] < sizes[-1] == 1_000
    assert sizes == sorted(sizes)


def test_prefetch_is_given_up_at_once_when_handlers_become_slow() -> None:
    prefetch = PrefetchSize(slots=10)
    for _ in range(40):
        prefetch.ran(0.000_01)
        prefetch.learn(round_trip=0.005, full=True)
    assert prefetch.size

    prefetch.ran(2.0)
    prefetch.learn(round_trip=0.005, full=True)

    assert prefetch.size == 0
