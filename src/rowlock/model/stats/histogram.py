"""Histogram: durations counted in fixed buckets, two to an octave, 0.5 ms to a day."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

_SHORTEST = 0.0005
_LONGEST = 86_400.0

# Bucket n ends where n points, and begins where the one before it ends; the last has no end.
BOUNDS = tuple(takewhile(lambda bound: bound < _LONGEST, (_SHORTEST * 2 ** (n / 2) for n in range(100))))
BUCKETS = len(BOUNDS) + 1

# In the database all buckets stand in one number, so many digits for each: numbers that are added add up every bucket.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by bucket; and of all that was counted the seconds, together and at most."""

    buckets: Mapping[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    longest: float = 0.0

    def __add__(self, other: Histogram) -> Histogram:
        """Both together."""
        buckets = Counter(self.buckets) + Counter(other.buckets)
        return Histogram(buckets, self.seconds + other.seconds, max(self.longest, other.longest))

    @property
    def count(self) -> int:
        """How many were counted."""
        return sum(self.buckets.values())

    def percentile(self, share: float) -> float:
        """The duration in seconds that this share of them did not exceed."""
        return percentile(self.buckets, share, longest=self.longest)


def bucket(seconds: float) -> int:
    """The bucket of a duration."""
    return bisect_right(BOUNDS, seconds)


def percentile(counts: Mapping[int, int], share: float, *, longest: float) -> float:
    """The duration in seconds that this share of them did not exceed, by counts by bucket and the longest of them."""
    wanted = share * sum(counts.values())
    below = 0
    for number, count in sorted(counts.items()):
        if below + count >= wanted and count:
            begin = BOUNDS[number - 1] if number else 0.0
            end = min(BOUNDS[number], longest) if number < len(BOUNDS) else longest
            return begin + (max(end, begin) - begin) * (wanted - below) / count
        below += count
    return longest


def pack(counts: Sequence[int]) -> str:
    """Counts, from the first bucket on, as one number."""
    return "".join([f"{count:0{_DIGITS}d}" for count in reversed(counts)]).lstrip("0") or "0"


def unpack(number: str) -> dict[int, int]:
    """The counts in such a number, by bucket."""
    digits = number.zfill(-(-len(number) // _DIGITS) * _DIGITS)
    counts = [int(digits[start : start + _DIGITS]) for start in range(0, len(digits), _DIGITS)]
    return {bucket: count for bucket, count in enumerate(reversed(counts)) if count}
