"""The retry policy: how long, how often, and for which errors."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlock.errors import InvalidOption
from rowlock.model.retry import Retry

settled = settings(derandomize=True, database=None, deadline=None, max_examples=200)

SPANS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365))


def never() -> float:
    return 0.0


def fully() -> float:
    return 1.0


def test_the_default_policy_is_ten_attempts_two_to_the_n_seconds_apart_and_at_most_15_minutes() -> None:
    # given
    retry = Retry()

    # then
    assert retry.attempts == 10
    assert [retry.delay(n, never).total_seconds() for n in range(1, 11)] == [2, 4, 8, 16, 32, 64, 128, 256, 512, 900]


def test_jitter_adds_up_to_a_quarter() -> None:
    # given
    retry = Retry()

    # then
    assert retry.delay(3, fully) == timedelta(seconds=10)
    assert retry.delay(3, lambda: 0.5) == timedelta(seconds=9)
    assert retry.delay(99, fully) == timedelta(minutes=15) * 1.25


@settled
@given(
    retry=st.builds(
        Retry,
        attempts=st.integers(1, 10**9),
        base=SPANS,
        factor=st.floats(1.0, 1000.0),
        cap=SPANS,
        jitter=st.floats(0.0, 1.0),
        on=st.none(),
    ),
    failures=st.integers() | st.sampled_from([0, 309, 310, 1023, 1024, 10**9, 10**400, -(10**400)]),
    luck=st.floats(),
)
def test_no_count_of_failures_overflows_and_no_delay_is_negative_or_over_the_cap_and_its_jitter(
    retry: Retry, failures: int, luck: float
) -> None:  # when
    delay = retry.delay(failures, lambda: luck)

    # then
    assert timedelta(0) <= delay <= retry.cap * (1.0 + retry.jitter)


@settled
@given(base=SPANS, factor=st.floats(1.0, 100.0), failures=st.integers(0, 2000))
def test_a_later_failure_never_waits_less(base: timedelta, factor: float, failures: int) -> None:
    # given
    retry = Retry(base=base, factor=factor, jitter=0.0)

    # then
    assert retry.delay(failures, never) <= retry.delay(failures + 1, never) <= retry.cap


def test_a_factor_of_one_keeps_the_delay_and_a_base_of_zero_retries_at_once() -> None:
    assert Retry(base=timedelta(seconds=7), factor=1.0).delay(10**6, never) == timedelta(seconds=7)
    assert Retry(base=timedelta(0)).delay(5, fully) == timedelta(0)
    assert Retry(cap=timedelta(milliseconds=500)).delay(1, never) == timedelta(milliseconds=500)


def test_none_means_one_attempt() -> None:
    assert Retry.none().attempts == 1


def test_a_policy_is_a_value() -> None:
    assert Retry(attempts=3) == Retry(attempts=3)
    assert hash(Retry(on=OSError)) == hash(Retry(on=OSError))


@pytest.mark.parametrize(
    ("on", "error", "wanted"),
    [
        (None, ValueError(), True),
        (OSError, ConnectionError(), True),
        (OSError, ValueError(), False),
        ((OSError, KeyError), KeyError(), True),
        ((), ValueError(), False),
        (lambda error: "again" in str(error), ValueError("again"), True),
        (lambda error: "again" in str(error), ValueError("never"), False),
        (lambda _: None, ValueError(), False),
    ],
)
def test_the_policy_says_which_errors_are_worth_another_attempt(on: Any, error: Exception, wanted: bool) -> None:  # noqa: ANN401, FBT001
    assert Retry(on=on).wants(error) is wanted


def test_a_predicate_that_raises_counts_as_yes_and_leaves_a_note_on_the_error() -> None:
    # given
    def broken(error: BaseException) -> bool:
        raise LookupError(error)

    error = ValueError("the handler's")

    # when
    wanted = Retry(on=broken).wants(error)

    # then
    assert wanted
    assert error.__notes__ == ["Retry(on=…) raised LookupError when asked about this error; it is retried"]


def test_a_note_that_cannot_be_left_is_let_go() -> None:
    # given
    class Stubborn(Exception):
        def add_note(self, note: str) -> None:
            raise RuntimeError(note)

    def broken(error: BaseException) -> bool:
        raise LookupError(error)

    # then
    assert Retry(on=broken).wants(Stubborn())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attempts": 0}, "use 1 (never retried)"),
        ({"attempts": -1}, "use 1 (never retried)"),
        ({"attempts": 10**9 + 1}, "1,000,000,000"),
        ({"attempts": 10**5000}, "out of range"),
        ({"attempts": True}, "must be an int, not bool"),
        ({"attempts": 2.0}, "must be an int, not float"),
        ({"base": 3}, "write timedelta(seconds=…)"),
        ({"base": timedelta(seconds=-1)}, "use zero to 365 days"),
        ({"cap": timedelta.max}, "use zero to 365 days"),
        ({"factor": 0.5}, "use 1.0 to 1000.0"),
        ({"factor": math.nan}, "use 1.0 to 1000.0"),
        ({"factor": math.inf}, "use 1.0 to 1000.0"),
        ({"factor": 10**5000}, "use 1.0 to 1000.0"),
        ({"factor": "2"}, "must be a number, not str"),
        ({"jitter": 1.5}, "use 0.0 to 1.0"),
        ({"jitter": math.nan}, "use 0.0 to 1.0"),
        ({"jitter": True}, "must be a number, not bool"),
        ({"on": int}, "not an exception type"),
        ({"on": (OSError, "KeyError")}, "not an exception type"),
        ({"on": "OSError"}, "write on=OSError"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else None,
)
def test_a_bad_value_is_refused_with_what_to_do(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Retry(**options)

    assert says in str(caught.value)
