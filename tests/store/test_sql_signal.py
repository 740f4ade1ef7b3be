"""rowlock.signal(): stored first, counted once, and never for a job that has ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.rows import put, travel
from tests.worker.working import Db, one
from tests.workflow.remembering import end, put_signal, put_workflow, row_of

PARKED = ("state", "waits_for", "wakes_at", "wakes")


def signals(db: Db) -> list[tuple[object, ...]]:
    return db.execute("select name, payload, key from rowlock.signals order by job, number").fetchall()


def send(db: Db, target: UUID | str, name: str = "paid", payload: str | None = None, key: str | None = None) -> str:
    return str(one(db, "select rowlock.signal(%s, %s, %s, %s)", str(target), name, payload, key))


# Stored, and counted


def test_a_signal_is_stored_as_it_was_sent(db: Db) -> None:
    job = put_workflow(db, "running")

    answer = send(db, job, "paid", '{"amount": 1e22, "note": "é"}', "webhook-77")

    stored = db.execute("select name, payload::text, key, taken_at, sent_at - now() < '1 min' from rowlock.signals")
    assert answer == "sent"
    assert stored.fetchall() == [("paid", '{"amount": 1e22, "note": "é"}', "webhook-77", None, True)]


def test_signals_are_numbered_in_the_order_in_which_they_came(db: Db) -> None:
    one_job, other = put_workflow(db, "running"), put_workflow(db, "running")

    for job, name in [(one_job, "a"), (other, "b"), (one_job, "c"), (one_job, "d")]:
        send(db, job, name)

    numbered = db.execute("select job, name from rowlock.signals order by job, number").fetchall()
    assert numbered == [(one_job, "a"), (one_job, "c"), (one_job, "d"), (other, "b")]


def test_signals_that_came_back_with_their_workflow_are_followed_by_new_ones(db: Db) -> None:
    job = put_workflow(db, wakes=1)  # as a retry leaves it, however many there were
    put_signal(db, job, "first", 7)

    send(db, job, "second")

    assert [name for name, *_ in signals(db)] == ["first", "second"]


def test_a_workflow_that_waits_is_ready_at_once(db: Db) -> None:
    job = put_workflow(db, "waiting", reason="waits for signal 'paid'", run_at=datetime(2020, 1, 1, tzinfo=UTC))

    send(db, job)

    assert row_of(db, job, *PARKED, "reason") == ("ready", None, None, 1, None)
    assert one(db, "select run_at > now() - interval '1 min' from rowlock.jobs"), "below the floors of claims"


def test_a_workflow_that_waits_with_a_time_limit_is_ready_before_that(db: Db) -> None:
    job = put_workflow(db, wakes_at=1, run_at=datetime.now(UTC) + timedelta(days=7))

    send(db, job)

    assert row_of(db, job, *PARKED) == ("ready", None, None, 1)
    assert one(db, "select run_at <= now() from rowlock.jobs")


def test_a_workflow_whose_time_limit_is_over_keeps_its_place(db: Db) -> None:
    over = datetime.now(UTC) - timedelta(hours=1)
    job = put_workflow(db, wakes_at=1, run_at=over)

    send(db, job)

    assert row_of(db, job, "state", "wakes_at", "run_at") == ("ready", None, over)


def test_a_workflow_that_waits_for_more_is_only_counted_for(db: Db) -> None:
    job = put_workflow(db, "waiting", wakes=3, wakes_at=5)

    send(db, job)
    parked = row_of(db, job, *PARKED)
    send(db, job)

    assert parked == ("waiting", "signal", 5, 4)
    assert row_of(db, job, *PARKED) == ("ready", None, None, 5)


@pytest.mark.parametrize(
    ("state", "columns"),
    [
        ("running", {}),
        ("ready", {"run_at": datetime(2099, 1, 1, tzinfo=UTC)}),
        ("waiting", {"waits_for": "code", "wakes_at": None}),
        ("waiting", {"waits_for": "pause", "wakes_at": 1}),
    ],
    ids=["running", "asleep", "without code", "paused"],
)
def test_a_workflow_that_waits_for_something_else_goes_on_doing_so(
    db: Db, state: str, columns: dict[str, object]
) -> None:
    job = put_workflow(db, state, **columns)
    before = row_of(db, job, "state", "waits_for", "wakes_at", "run_at", "token")

    answer = send(db, job)

    assert answer == "sent"
    assert row_of(db, job, "state", "waits_for", "wakes_at", "run_at", "token") == before
    assert row_of(db, job, "wakes") == (1,)


def test_a_signal_that_is_rolled_back_was_never_sent(db: Db) -> None:
    job = put_workflow(db, "waiting")

    with db.transaction(force_rollback=True):
        send(db, job, key="k")

    assert signals(db) == []
    assert row_of(db, job, *PARKED) == ("waiting", "signal", 1, 0)
    assert send(db, job, key="k") == "sent"


@pytest.mark.parametrize("parked", [True, False])
def test_a_worker_is_notified_where_one_is_parked(url: str, db: Db, *, parked: bool) -> None:
    job = put_workflow(db, "waiting", queue="mail")
    if parked:
        db.execute("insert into rowlock.parked values ('mail', gen_random_uuid())")
    with psycopg.connect(url, autocommit=True) as ear:
        ear.execute(f'listen "{one(db, "select rowlock.channel(%s)", "mail")}"'.encode())
        ear.execute("listen over")

        send(db, job)
        db.execute("notify over")

        heard = [note.payload for note in takewhile(lambda note: note.channel != "over", ear.notifies())]
    assert heard == ([""] if parked else [])


# Twice (T13: a duplicate was stored once, and woke twice)


def test_a_second_signal_with_the_same_key_is_nothing(db: Db) -> None:
    job = put_workflow(db, "waiting", wakes_at=2)

    answers = [send(db, job, "paid", "1", "k"), send(db, job, "paid", "2", "k"), send(db, job, "other", "3", "k")]

    assert answers == ["sent", "duplicate", "duplicate"]
    assert signals(db) == [("paid", 1, "k")]
    assert row_of(db, job, *PARKED) == ("waiting", "signal", 2, 1)


def test_a_signal_that_was_taken_is_still_known_by_its_key(db: Db) -> None:
    job = put_workflow(db, "running")
    send(db, job, key="k")
    db.execute("update rowlock.signals set taken_at = now()")

    assert send(db, job, key="k") == "duplicate"


def test_a_key_is_one_workflows_own(db: Db) -> None:
    jobs = [put_workflow(db, "running") for _ in range(2)]

    assert [send(db, job, key="k") for job in jobs] == ["sent", "sent"]


def test_a_signal_without_a_key_is_always_another_one(db: Db) -> None:
    job = put_workflow(db, "running")

    assert [send(db, job), send(db, job)] == ["sent", "sent"]
    assert len(signals(db)) == 2


def test_a_signal_that_is_sent_again_by_its_id_is_the_same(db: Db) -> None:
    job, signal = put_workflow(db, "running"), uuid4()
    again = "select answer from rowlock.send_signal(%s, %s, 'paid', null, %s)"

    answers = [one(db, again, signal, str(job), "k"), one(db, again, signal, str(job), "k")]
    end(db, job, "succeeded")
    answers.append(one(db, again, signal, str(job), "k"))
    answers.append(one(db, again, signal, str(job), None))

    assert answers == ["sent"] * 4
    assert one(db, "select json_array_length(steps -> 'signals') from rowlock.history") == 1


# Late (T12: a signal brought a cancelled workflow back to life)


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_a_workflow_that_has_ended_takes_no_signal_and_stays_where_it_is(db: Db, state: str) -> None:
    job = put_workflow(db, key="checkout:1")
    end(db, job, state)

    answers = [send(db, job), send(db, "checkout:1")]

    assert answers == ["ended", "ended"]
    assert one(db, "select count(*) from rowlock.jobs") == 0
    assert one(db, "select state from rowlock.history") == state
    assert signals(db) == []


@pytest.mark.parametrize("state", ["running", "ready"])
def test_a_workflow_that_is_being_cancelled_takes_no_signal(db: Db, state: str) -> None:
    job = put_workflow(db, state, cancel_at=datetime.now(UTC))

    answer = send(db, job)

    assert answer == "ended"
    assert signals(db) == []
    assert row_of(db, job, "state", "wakes") == (state, 0)


@pytest.mark.parametrize("how", ["ended", "cancelling"])
def test_who_sends_again_what_was_sent_in_time_is_told_so(db: Db, how: str) -> None:
    job = put_workflow(db, "running")
    send(db, job, key="webhook-77")
    if how == "ended":
        end(db, job, "succeeded")
    else:
        db.execute("update rowlock.jobs set cancel_at = now()")

    assert send(db, job, key="webhook-77") == "duplicate"
    assert send(db, job, key="webhook-78") == "ended"


# To whom


def test_a_workflow_is_found_by_its_key(db: Db) -> None:
    job = put_workflow(db, key="checkout:1")

    send(db, "checkout:1")

    assert db.execute("select job from rowlock.signals").fetchall() == [(job,)]


def test_what_is_written_as_an_id_is_an_id(db: Db) -> None:
    by_id = put_workflow(db)
    put_workflow(db, key=str(by_id))

    send(db, str(by_id).upper())

    assert db.execute("select job from rowlock.signals").fetchall() == [(by_id,)]


def test_a_hash_is_a_key(db: Db) -> None:
    other = put_workflow(db)
    job = put_workflow(db, key=other.hex)

    send(db, other.hex)

    assert db.execute("select job from rowlock.signals").fetchall() == [(job,)]


@pytest.mark.parametrize("target", ["01970000-0000-7000-8000-000000000000", "nobody's key", ""])
def test_an_unknown_workflow_is_an_error(db: Db, target: str) -> None:
    with pytest.raises(psycopg.errors.NoDataFound, match=f"rowlock.signal: there is no workflow {target}"):
        send(db, target)


def test_a_key_whose_workflow_is_gone_from_history_is_nobodys(db: Db) -> None:
    job = put_workflow(db, key="checkout:1")
    end(db, job)
    db.execute("delete from rowlock.history")

    with pytest.raises(psycopg.errors.NoDataFound):
        send(db, "checkout:1")


@pytest.mark.parametrize("state", ["ready", "running", "succeeded"])
def test_a_plain_job_takes_no_signal(db: Db, state: str) -> None:
    job = put(db, state, key="k")

    for target in (job, "k") if state != "succeeded" else (job,):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"job {job} is not a workflow"):
            send(db, target)

    assert signals(db) == []


# What is no signal


@pytest.mark.parametrize(
    ("name", "payload", "key", "words"),
    [
        (None, None, None, "1 to 200 bytes, not null"),
        ("", None, None, "1 to 200 bytes, not 0"),
        ("x" * 201, None, None, "1 to 200 bytes, not 201"),
        ("a\nb", None, None, "cannot be seen"),
        (" a", None, None, "begins or ends with a space"),
        ("a/b", None, None, "a / or a #"),
        ("paid", '{"a": "\\u0000"}', None, "what JSON cannot carry"),
        ("paid", '"\\ud800"', None, "what JSON cannot carry"),
        ("paid", '"' + "x" * 1_100_000 + '"', None, "1 MiB is the limit"),
        ("paid", None, "", "1 to 500 bytes, not 0"),
        ("paid", None, "k" * 501, "1 to 500 bytes, not 501"),
    ],
    ids=["null", "empty", "long", "newline", "space", "slash", "NUL", "surrogate", "too large", "no key", "long key"],
)
def test_what_no_workflow_could_be_given_is_refused(
    db: Db, name: str | None, payload: str | None, key: str | None, words: str
) -> None:
    job = put_workflow(db)

    with pytest.raises(psycopg.errors.InvalidParameterValue, match=words):
        db.execute("select rowlock.signal(%s, %s, %s, %s)", [str(job), name, payload, key])

    assert signals(db) == []


def test_nobody_is_nobody(db: Db) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="target is null"):
        db.execute("select rowlock.signal(null, 'paid')")


def test_a_signal_is_sent_by_names_of_parameters_and_dated_by_our_clock(db: Db) -> None:
    job = put_workflow(db, key="checkout:1")
    travel(db, timedelta(days=30))

    db.execute("select rowlock.signal(target => 'checkout:1', name => 'paid', key => 'k')")

    assert db.execute("select job, payload, sent_at > now() + interval '29 days' from rowlock.signals").fetchall() == [
        (job, None, True)
    ]
