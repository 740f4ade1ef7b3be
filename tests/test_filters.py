"""Filters: which jobs an operator means, live and ended alike, and nothing but values reaches PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from rowlock import Filter, Rowlock
from rowlock.errors import InvalidOption
from rowlock.model.ids import new_id
from rowlock.model.record import JobRecord
from rowlock.store.find import windows
from tests.depth import deep
from tests.rows import Db, counts, put, put_many

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LONG_AGO = "019c0000-0000-7000-8000-00000000"

# What has broken tools like this one: quotes, comments, placeholders of every driver, patterns, odd Unicode, JSON.
HOSTILE = [
    "'; drop table rowlock.jobs; --",
    '"; delete from rowlock.history; --',
    "' or '1'='1",
    "\\'; select pg_sleep(10); --",
    "%s",
    "%(name)s",
    "%%",
    ":queue",
    "$1",
    "{0}",
    "{",
    '{"a": 1}',
    "null",
    "NULL",
    "a,b",
    '"quoted"',
    "back\\slash",
    "new\nline",
    "tab\tbed",
    "per_cent%under_score",
    "\U0001d4b0nicode \ufdfd \u202e\u200b",
    "Ωç√≤≥÷",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "*",
    " padded ",
]


def ids_of(app: Rowlock, asked: Filter) -> list[UUID]:
    return [record.id for record in app.jobs.list(asked).records]


@pytest.mark.parametrize(
    ("columns", "asked"),
    [
        ({"queue": "mail"}, Filter(queue="mail")),
        ({"task": "send"}, Filter(task="send")),
        ({"tags": ["a", "urgent"]}, Filter(tag="urgent")),
        ({"key": "order 5"}, Filter(key="order 5")),
        ({"args": {"x": 1, "y": "z"}}, Filter(args={"x": 1})),
        ({"args": {"x": {"deep": [1, None]}}}, Filter(args={"x": {"deep": [1, None]}})),
        ({"args": {"x": None}}, Filter(args={"x": None})),
        ({"reason": "poison"}, Filter(reason="poison")),
        ({"error": "ConnectionError"}, Filter(error="ConnectionError")),
        ({"error": "requests.exceptions.ConnectionError"}, Filter(error="ConnectionError")),
        ({"error": "ConnectionError"}, Filter(error="builtins.ConnectionError")),
        ({"created_at": NOON}, Filter(since=NOON, until=NOON + HOUR)),
        ({"created_at": NOON - HOUR}, Filter(until=NOON)),
    ],
)
def test_a_filter_finds_the_jobs_it_describes_and_no_others(
    app: Rowlock, db: Db, columns: dict[str, Any], asked: Filter
) -> None:
    other = {"queue": "mai", "task": "sen", "tags": ["urge"], "key": "order 55", "args": {"x": {"deep": [1]}, "y": "z"}}
    for one in ("ready", "failed"):
        put(db, one, **other | {"key": f"order 55 {one}"}, reason="pois", error="app.OtherConnectionError")
        put(db, one, args={"x": "1"})
    live = put(db, "running", **columns)
    ended = [put(db, state, **columns) for state in ("failed", "succeeded")]

    found = ids_of(app, asked)

    assert found == [*reversed(ended), live]


def test_every_part_of_a_filter_must_apply(app: Rowlock, db: Db) -> None:
    put(db, "failed", queue="mail", task="send")
    put(db, "failed", queue="mail", tags=["a"])
    wanted = put(db, "failed", queue="mail", task="send", tags=["a"])

    found = ids_of(app, Filter(queue="mail", task="send", tag="a"))

    assert found == [wanted]


def test_a_job_that_has_just_failed_is_found_by_when_it_ended_however_old_it_is(app: Rowlock, db: Db) -> None:
    now = datetime.now(UTC)
    put(db, "ready")
    late = put(db, "failed", created_at=now - 3 * HOUR, ended_at=now - timedelta(seconds=7), id=LONG_AGO + "0001")
    put(db, "failed", created_at=now - 3 * HOUR, ended_at=now - 2 * HOUR, id=LONG_AGO + "0002")
    well = put(db, "succeeded", created_at=now - 3 * HOUR, ended_at=now - timedelta(seconds=7), id=LONG_AGO + "0003")
    lately = Filter(ended_after=now - HOUR)

    found = {record.id for record in app.jobs.list(lately).records}
    failed = [record.id for record in app.jobs.list(Filter(state="failed", ended_after=now - HOUR)).records]
    before = Filter(state="failed", ended_after=now - 3 * HOUR, ended_before=now - HOUR)
    earlier = app.jobs.list(before).records
    preview = app.jobs.preview("retry", lately)

    assert (found, failed, len(earlier)) == ({late, well}, [late], 1)
    assert (preview.count, app.jobs.retry(lately).changed) == (1, 1)
    with pytest.raises(InvalidOption, match="cancel is for jobs that live"):
        app.jobs.cancel(lately)


@pytest.mark.parametrize("window", [1, 3, 2_000])
def test_ended_jobs_alone_are_listed_by_when_they_ended_each_once_latest_first(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(windows, "WINDOW", window)
    monkeypatch.setattr(windows, "_FIRST", 1)
    put(db, "ready", task="t1")
    ends = [3, 1, 2, 2, 5, 2, 1, 4, 2, 2]  # in the order in which they were made; several at the same moment
    made = [
        (NOON + end * HOUR, put(db, state, task=task, created_at=NOON, ended_at=NOON + end * HOUR))
        for end in ends
        for state, task in (("failed", "t1"), ("succeeded", "t1"), ("failed", "t2"))
    ]
    latest = [job for _end, job in sorted(made, reverse=True)]
    wrong = {record.id for record in app.jobs.list(Filter(task="t1", state="failed"), limit=100).records}

    every, failed, lately = (
        paged(app, Filter(task="t1", **asked))
        for asked in ({"ended_before": NOON + 9 * HOUR}, {"state": "failed"}, {"state": "succeeded", "since": NOON})
    )

    assert len(every) == 20
    assert every == [job for job in latest if job in {*every}]
    assert failed == [job for job in latest if job in wrong]
    assert lately == [job for job in every if job not in wrong]
    with pytest.raises(InvalidOption, match="not a place in this list"):
        app.jobs.list(Filter(state="failed"), before=latest[0])


def paged(app: Rowlock, asked: Filter) -> list[UUID]:
    """All that match, a page of three at a time, from what a page is written as."""
    page = app.jobs.list(asked, limit=3)
    found = list(page.records)
    while page.next is not None:
        page = app.jobs.list(asked, limit=3, before=str(page.next))
        found += page.records
    return [record.id for record in found]


def test_states_are_one_or_several_or_any(app: Rowlock, db: Db) -> None:
    made = {state: put(db, state) for state in ("waiting", "ready", "running", "succeeded", "failed", "cancelled")}

    assert ids_of(app, Filter(state="failed")) == [made["failed"]]
    assert ids_of(app, Filter(state=["ready", "cancelled"])) == [made["cancelled"], made["ready"]]
    assert set(ids_of(app, Filter())) == set(made.values())


def test_ids_name_jobs_and_no_ids_name_none(app: Rowlock, db: Db) -> None:
    live, ended, _other = put(db), put(db, "failed"), put(db)

    assert ids_of(app, Filter(ids=[live, str(ended), uuid4()])) == [ended, live]
    assert ids_of(app, Filter(ids=[live], state="failed")) == []
    assert ids_of(app, Filter(ids=[])) == []


def test_more_ids_than_a_window_holds_are_all_found(app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW", 7)
    made = [put(db, state) for _ in range(10) for state in ("ready", "failed")]

    found = ids_of(app, Filter(ids=made))

    assert found == sorted(made, reverse=True)


@pytest.mark.parametrize("window", [1, 3, 2_000])
def test_pages_hold_every_job_once_newest_first_live_and_ended_mixed(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(windows, "WINDOW", window)
    states = ["ready", "failed", "failed", "succeeded", "waiting", "ready", "ready", "cancelled"]
    made = [put(db, state, task=f"t{n % 2}") for n in range(5) for state in states]

    records: list[JobRecord] = []
    page = app.jobs.list(Filter(task="t1"), limit=3)
    records += page.records
    while page.next is not None:
        page = app.jobs.list(Filter(task="t1"), limit=3, before=page.next)
        assert page.records
        records += page.records

    assert [record.id for record in records] == [job for job in reversed(made) if made.index(job) // 8 % 2]


def test_a_record_in_a_list_has_everything_but_its_result(app: Rowlock, db: Db) -> None:
    put(db, "failed", args={"x": [1]}, tags=["a"], key="k", error="app.Broken", reason="exhausted", result='"big"')

    (record,) = app.jobs.list().records

    assert (record.task, record.state, record.reason, record.key, record.tags) == (
        "t",
        "failed",
        "exhausted",
        "k",
        ("a",),
    )
    assert (record.args, record.result) == ({"x": [1]}, None)
    assert [error.type for error in record.errors] == ["app.Broken"]


def test_the_look_back_ends_where_jobs_are_older_than_asked_for(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among ten million jobs, those of the last hour are found without reading the others."""
    monkeypatch.setattr(windows, "WINDOW", 10)
    for n in range(50):
        long_ago = NOON - timedelta(days=5)
        put(db, "succeeded", created_at=long_ago, ended_at=long_ago, id=LONG_AGO + f"{n:04}")
    wanted = put(db, "succeeded", created_at=NOON)
    looks = monitored(monkeypatch)

    found = ids_of(app, Filter(since=NOON - HOUR, state=["ready", "succeeded"]))
    by_id = len(looks)
    by_end = ids_of(app, Filter(since=NOON - HOUR, state="succeeded"))

    assert found == by_end == [wanted]
    assert by_id == 2  # the first window still holds the one that is wanted; six would read everything
    assert len(looks) - by_id == 1


def monitored(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The looks at ended jobs that are taken from now on."""
    looks: list[Any] = []
    ended: Callable[..., Any] = windows.scan_ended

    def noted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the same as it gets
        looks.append(kwargs)
        return ended(*args, **kwargs)

    monkeypatch.setattr(windows, "scan_ended", noted)
    return looks


@deep
def test_hostile_text_is_only_ever_a_value(app: Rowlock, db: Db) -> None:
    bystanders = {put(db), put(db, "failed")}
    for text in HOSTILE:
        facts = {"queue": text, "task": text, "tags": [text], "key": text, "reason": text, "error": text}
        wanted = {put(db, state, **facts, args={text: text}) for state in ("ready", "failed")}
        by: dict[str, Any] = {
            "queue": text,
            "task": text,
            "tag": text,
            "key": text,
            "reason": text,
            "error": text,
            "args": {text: text},
        }

        for name, value in by.items():
            assert set(ids_of(app, Filter(**{name: value}))) == wanted, (name, text)
        done = app.jobs.delete(Filter(**by), by=text, why=text)

        assert done.changed == 2
        assert {(event.actor, event.details["why"]) for event in app.jobs.events(limit=2)} == {(text, text)}

    assert set(ids_of(app, Filter())) == bystanders


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"state": "done"}, "is none of waiting, parked, ready"),
        ({"state": ["ready", "lost"]}, "'lost' is none of"),
        ({"state": []}, "leave it out for any"),
        ({"state": 5}, "must be a str or several"),
        ({"queue": ""}, "use 1 to 200"),
        ({"queue": "q" * 201}, "use 1 to 200"),
        ({"task": "a\x00b"}, "contains NUL"),
        ({"key": "\udc80"}, "lone surrogate"),
        ({"tag": 5}, "must be a str"),
        ({"args": ["x"]}, "mapping of arguments by name"),
        ({"args": {"x": object()}}, "args"),
        ({"args": {"x": float("nan")}}, "args"),
        ({"args": {"x": "a\x00"}}, "args"),
        ({"since": NOON.replace(tzinfo=None)}, "has no time zone"),
        ({"until": "yesterday"}, "must be a datetime"),
        ({"since": NOON, "until": NOON}, "not after since"),
        ({"error": "e" * 401}, "use 1 to 400"),
        ({"reason": ""}, "use 1 to"),
        ({"ids": "abc"}, "must be several"),
        ({"ids": ["abc"]}, "is not a UUID"),
        ({"ids": [5]}, "is not a UUID"),
        ({"ids": 5}, "must be several"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_with_what_to_do(wrong: dict[str, Any], advice: str) -> None:
    with pytest.raises(InvalidOption, match=advice):
        Filter(**wrong)


def test_a_filter_says_what_was_asked_for() -> None:
    job = new_id()

    asked = Filter(state="failed", args={"x": 1}, since=NOON, ids=[job])

    assert asked.to_dict() == {"state": ["failed"], "args": {"x": 1}, "since": NOON.isoformat(), "ids": [job]}
    assert Filter().to_dict() == {}


@pytest.mark.parametrize("limit", [0, -1, 1_001, True, "5"])
def test_a_page_has_a_sensible_size(limit: Any) -> None:  # noqa: ANN401  wrong on purpose
    with pytest.raises(InvalidOption, match="limit="):
        Rowlock().jobs.list(limit=limit)


def test_a_preview_counts_what_a_verb_would_change_and_what_it_would_pass_over(app: Rowlock, db: Db) -> None:
    for state, task in [("ready", "a"), ("ready", "a"), ("waiting", "b"), ("running", "a"), ("failed", "a")]:
        put(db, state, task=task)

    preview = app.jobs.preview("move", Filter())

    assert (preview.count, preview.passed_over, preview.capped) == (3, 1, False)
    assert preview.tasks == {"a": 2, "b": 1}
    assert preview.states == {"ready": 2, "waiting": 1}
    assert [record.state for record in preview.samples] == ["waiting", "ready", "ready"]
    assert counts(db) == (4, 1)


def test_a_preview_counts_to_ten_thousand_and_says_that_there_is_more(app: Rowlock, db: Db) -> None:
    put_many(db, 10_000, "failed")
    exact = app.jobs.preview("retry", Filter())
    put_many(db, 1, "failed")

    more = app.jobs.preview("retry", Filter())

    assert (exact.count, exact.capped) == (10_000, False)
    assert (more.count, more.capped) == (10_000, True)
    assert len(more.samples) == 5


def test_what_operators_are_answered_can_be_json(app: Rowlock, db: Db) -> None:
    put(db)
    job = put(db)

    page, preview = app.jobs.list(limit=1), app.jobs.preview("cancel", Filter())

    assert page.to_dict()["next"] == str(job)
    assert page.to_dict()["records"][0]["id"] == str(job)
    assert preview.to_dict() | {"samples": []} == {
        "verb": "cancel",
        "count": 2,
        "passed_over": 0,
        "capped": False,
        "tasks": {"t": 2},
        "states": {"ready": 2},
        "samples": [],
    }
