"""Durations in buckets: every duration has one, and percentiles are right to within it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlock.model.stats.histogram import BOUNDS, BUCKETS, Histogram, bucket, pack, percentile, unpack

SECONDS = st.lists(st.floats(0.0005, 80_000), min_size=1, max_size=200)


def test_buckets_go_from_half_a_millisecond_to_a_day_by_half_octaves() -> None:
    assert BOUNDS[0] == 0.0005
    assert 86_400 / sqrt(2) <= BOUNDS[-1] < 86_400
    assert all(later / earlier == pytest.approx(sqrt(2)) for earlier, later in pairwise(BOUNDS))


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.0005, 1.0, 86_400.0, 1e9])
def test_every_duration_has_a_bucket(seconds: float) -> None:
    assert 0 <= bucket(seconds) < BUCKETS


@given(SECONDS, st.sampled_from([0.5, 0.95, 0.99]))
def test_a_percentile_is_right_to_within_a_bucket(seconds: list[float], share: float) -> None:
    counts = Counter(map(bucket, seconds))
    ordered = sorted(seconds)
    exact = next(one for number, one in enumerate(ordered, 1) if number >= share * len(ordered))

    said = percentile(counts, share, longest=max(seconds))

    assert exact / sqrt(2) * 0.999 <= said <= exact * sqrt(2) * 1.001


@given(SECONDS)
def test_percentiles_rise_and_end_at_the_longest(seconds: list[float]) -> None:
    counts = Counter(map(bucket, seconds))

    said = [percentile(counts, share, longest=max(seconds)) for share in (0.01, 0.5, 0.95, 0.99, 1.0)]

    assert said == sorted(said)
    assert said[-1] == pytest.approx(max(seconds))


COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=BUCKETS)


@given(COUNTS)
def test_counts_in_one_number_come_back_as_they_were(counts: list[int]) -> None:
    assert unpack(pack(counts)) == {number: count for number, count in enumerate(counts) if count}


@given(COUNTS, COUNTS)
def test_to_add_such_numbers_is_to_add_every_bucket(some: list[int], others: list[int]) -> None:
    both = Histogram(unpack(pack(some))) + Histogram(unpack(pack(others)))

    assert unpack(str(int(pack(some)) + int(pack(others)))) == both.buckets
    assert both.count == sum(some) + sum(others)


def test_histograms_together_have_the_longer_of_their_longest() -> None:
    both = Histogram({1: 2}, seconds=3.0, longest=2.0) + Histogram({1: 1, 7: 1}, seconds=4.0, longest=1.0)

    assert both == Histogram({1: 3, 7: 1}, seconds=7.0, longest=2.0)
