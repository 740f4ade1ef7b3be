"""The choice of orders itself: each is played once, also those that come seldom, and there is an end to it."""

from __future__ import annotations

import itertools

import pytest

from tests.faults.interleaving.machine import EveryOrder


def test_every_order_is_played_once() -> None:
    played = []

    for choose in EveryOrder():
        left, order = {"a": 2, "b": 1, "c": 1}, ""
        while able := [name for name, count in left.items() if count]:
            order += choose(able)
            left[order[-1]] -= 1
        played.append(order)

    assert sorted(played) == sorted({"".join(order) for order in itertools.permutations("aabc")})


@pytest.mark.parametrize(("every", "expected"), [(1, {"a", "b"}), (20, {"a", "b"}), (10_000, {"a"})])
def test_what_comes_seldom_is_played_and_what_does_not_come_again_is_given_up(every: int, expected: set[str]) -> None:
    """Who is first of two that are woken at once is not ours to choose."""
    played: list[str] = []

    for choose in EveryOrder():
        played.append(choose(["a", "b"] if len(played) % every == 0 else ["a"]))

    assert {*played} == expected
