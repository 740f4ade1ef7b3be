"""Keys that make no sense are refused, and told why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from rowlock import Key, Rowlock
from rowlock.errors import InvalidOption
from tests.keyed import DEBOUNCE, HOUR, declared

WRONG: Any = Key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Key(""), "takes 0 bytes"),
        (lambda: Key("k\x00"), "NUL"),
        (lambda: WRONG(7), "must be a str"),
        (lambda: Key("k", period=timedelta(0)), "more than zero"),
        (lambda: Key("k", period=timedelta(days=401)), "up to 400 days"),
        (lambda: WRONG("k", period=60), "write timedelta"),
        (lambda: WRONG("k", taken="drop"), "must be one of 'return', 'skip'"),
        (lambda: WRONG("k", taken=["replace"]), "must be one of"),
        (lambda: Key("k", period=HOUR, taken="replace"), "leave period out"),
        (lambda: Key("k", period=HOUR, taken="debounce", at_most=HOUR), "leave period out"),
        (lambda: Key("k", taken="debounce"), "needs at_most"),
        (lambda: Key("k", taken="debounce", at_most=-HOUR), "more than zero"),
        (lambda: Key("k", taken="replace", at_most=HOUR), "goes with taken='debounce'"),
    ],
)
def test_a_key_that_makes_no_sense_is_refused(make: Callable[[], Key], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        make()


def test_a_call_that_does_not_say_by_how_much_to_put_off_is_refused() -> None:
    task = declared(Rowlock(), "t")

    with pytest.raises(InvalidOption, match="say by how much"):
        task.using(key=DEBOUNCE)
    with pytest.raises(InvalidOption, match="longer than its key's at_most"):
        task.using(key=DEBOUNCE, delay=2 * HOUR)
