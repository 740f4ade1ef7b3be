"""The invariants, held against what the sessions were told and what the flight recorder saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.faults.interleaving.acts import Fact
from tests.faults.interleaving.recorder import Db, Version, versions

_LEGAL = {
    (None, "ready"),  # enqueued
    ("ready", "running"),  # claimed
    ("waiting", "running"),  # taken up
    ("running", "running"),  # progress, and the mark of a cancel
    ("running", "ready"),  # retried, snoozed, handed back, rescued
    ("running", "waiting"),  # blocked
    ("waiting", "ready"),  # released
    ("ready", "ready"),  # moved, hurried
    ("waiting", "waiting"),
    ("ready", None),  # cancelled, deleted; a resend taken back
    ("waiting", None),
    ("running", None),  # settled, poisoned
}
_ENDS_AN_ATTEMPT = {"settled", "returned", "rescued", "handed back"}


def judge(db: Db, facts: Sequence[Fact]) -> None:
    """No loss, no ghost, one end, legal steps, fenced writes, right counts, cancelled for good, one job for a key."""
    record = versions(db)
    enqueued = {fact.job for fact in facts if fact.kind == "enqueued"}
    assert set(record) == enqueued, "I1, I2: the jobs there are, are those whose enqueue was committed"
    for job, story in record.items():
        told = [fact for fact in facts if fact.job == job]
        try:
            _chain(story)
            _fencing(story, told)
            _counts(story, told)
            _endings(story, told)
        except AssertionError as error:
            error.add_note("\n".join([f"job {job}", *map(str, story), *map(str, told)]))
            raise
    joined = {fact.job for fact in facts if fact.kind == "joined"}
    assert joined <= enqueued, "I17: somebody was sent to a job that does not exist"
    _places(db, enqueued)
    _keys(db)


def _chain(story: Iterable[Version]) -> None:
    """I4: every version follows from the one before, by a step that the state graph has."""
    before = None
    for version in story:
        if version.place == "jobs":
            assert version.old == before, "a version does not follow from the one before"
            assert (_state(version.old), _state(version.new)) in _LEGAL, f"illegal: {version}"
            before = version.new


def _fencing(story: Iterable[Version], told: Iterable[Fact]) -> None:
    """I5: each claim has a token of its own; each attempt ended once, by one who was told so, and by nobody else."""
    live = [version for version in story if version.place == "jobs"]
    starts = [v.new["token"] for v in live if v.new and _state(v.new) == "running" and _state(v.old) != "running"]
    ends = [v.old["token"] for v in live if v.old and _state(v.old) == "running" and _state(v.new) != "running"]
    for version in live:
        if _state(version.old) == _state(version.new) == "running" and version.old and version.new:
            assert version.old["token"] == version.new["token"], f"a running job changed hands: {version}"
    told = list(told)
    assert Counter(starts) == Counter(fact.token for fact in told if fact.kind == "claimed")
    assert len(set(starts)) == len(starts), "a token was used twice"
    accepted = [fact.token for fact in told if fact.kind in {"settled", "returned", "rescued"}]
    assert Counter(accepted) <= Counter(ends), "an outcome was said to be accepted and was not"
    assert len(ends) == sum(fact.kind in _ENDS_AN_ATTEMPT for fact in told), "an attempt ended that nobody ended"
    progressed = {fact.token for fact in told if fact.kind == "progressed"}
    assert progressed <= set(starts)


def _counts(story: Sequence[Version], told: Sequence[Fact]) -> None:
    """I8: claims, failures and crashes are what happened."""
    by_place = {version.place: version.new for version in story if version.new is not None}
    last = by_place.get("history", by_place["jobs"])
    assert last["claims"] == sum(fact.kind == "claimed" for fact in told)
    assert last["failures"] == sum(fact.spent for fact in told)
    happened = Counter(fact.kind for fact in told)
    assert last["crashes"] == happened["rescued"] - happened["pardoned"]


def _endings(story: Iterable[Version], told: Iterable[Fact]) -> None:
    """I3, I16: it ends once, and nothing follows but a resend that is taken back; cancelled stays cancelled."""
    ended, marked = None, False
    for version in story:
        if version.place == "history":
            assert ended is None, "it ended twice"
            assert version.old is None, "history was rewritten"
            ended = version.new
        assert not (ended and version.new and version.new["state"] == "running"), "it ran after its end"
        assert not (marked and version.new and version.new["state"] in {"ready", "waiting"}), "it came back to life"
        marked = marked or bool(version.place == "jobs" and version.new and version.new.get("cancel_at"))
    cancelled = any(fact.kind == "cancelled" for fact in told)
    if cancelled or marked:
        assert ended is None or ended["state"] == "cancelled", "a cancelled job ended otherwise"
    if cancelled and not marked:
        assert ended is not None


def _places(db: Db, enqueued: set[str]) -> None:
    """I1: each job is in one place."""
    found = db.execute("select id::text from rowlock.jobs union all select id::text from rowlock.history").fetchall()
    assert sorted(job for (job,) in found) == sorted(enqueued), "a job is in no place, or in two"


def _keys(db: Db) -> None:
    """I17: a key is held by one live job, the one whose key it is; and else by one that has succeeded, for a period."""
    holders = db.execute("select key, job::text from rowlock.keys order by key").fetchall()
    owners = db.execute("select key, id::text from rowlock.jobs where key is not null order by key").fetchall()
    kept = db.execute(
        """
        select held.key, held.job::text from rowlock.keys as held
        join rowlock.history as ended on ended.id = held.job and ended.key = held.key and ended.state = 'succeeded'
        where held.until is not null
        """
    ).fetchall()
    assert sorted([*owners, *kept]) == sorted(holders)


def _state(row: dict[str, object] | None) -> object:
    return None if row is None else row["state"]
