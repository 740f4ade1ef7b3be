"""A worker's times follow from its lease, and are checked against each other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rowlock import Rowlock
from rowlock.errors import InvalidOption
from rowlock.worker.settings import Timing

NOWHERE = "postgresql://nobody@nowhere/none"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@pytest.mark.parametrize("lease", [seconds(1), seconds(2), seconds(7), seconds(30), timedelta(microseconds=1_000_001)])
def test_a_lease_alone_always_makes_sense(lease: timedelta) -> None:
    timing = Timing.chosen(lease=lease, renew=None, deadline=None)

    assert timing.needs <= lease
    assert lease - timing.needs < timedelta(microseconds=10)


def test_what_does_not_fit_together_is_refused_with_its_numbers_and_a_way_out() -> None:
    with pytest.raises(InvalidOption) as caught:
        Rowlock(NOWHERE).worker(lease=seconds(10), renew=seconds(4), deadline=seconds(2))

    assert str(caught.value) == (
        "a lease of 10 s is too short to be renewed every 4 s with a deadline of 2 s: renew + 4 * deadline may not "
        "exceed it; make the lease at least 12 s, or renew or deadline shorter"
    )


@pytest.mark.parametrize(
    ("given", "least"),
    [
        ({"renew": seconds(11)}, "33 s"),
        ({"deadline": seconds(6)}, "36 s"),
        ({"renew": seconds(20), "deadline": seconds(3)}, "32 s"),
    ],
)
def test_the_lease_that_is_proposed_is_accepted(given: dict[str, timedelta], least: str) -> None:
    with pytest.raises(InvalidOption, match=f"make the lease at least {least},"):
        Rowlock(NOWHERE).worker(**given)  # type: ignore[arg-type]

    Rowlock(NOWHERE).worker(lease=seconds(float(least.removesuffix(" s"))), **given)  # type: ignore[arg-type]


def test_the_environment_is_checked_with_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWLOCK_RENEW", "20")
    monkeypatch.setenv("ROWLOCK_WORKER_DEADLINE", "2")

    Rowlock(NOWHERE).worker()

    with pytest.raises(InvalidOption, match="renewed every 20 s with a deadline of 2 s"):
        Rowlock(NOWHERE).worker(lease=seconds(27))
