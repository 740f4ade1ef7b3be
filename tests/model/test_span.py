"""Lengths of time as they are typed, there and back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlock.errors import InvalidOption
from rowlock.model.formatting import is_span, read_span, typed_span


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_written_is_read_as_the_same(seconds: int) -> None:
    length = timedelta(seconds=seconds)

    assert read_span(typed_span(length)) == length


@pytest.mark.parametrize("typed", ["", "15", "min", "0 3 * * *", "1h tomorrow", "-5min"])
def test_what_is_no_length_of_time_is_refused_with_an_example(typed: str) -> None:
    assert not is_span(typed)
    with pytest.raises(InvalidOption, match="write 90s, 15min"):
        read_span(typed)


def test_a_length_beyond_time_is_refused() -> None:
    with pytest.raises(InvalidOption, match="longer than time itself"):
        read_span("999999999w")
