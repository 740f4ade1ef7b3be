"""How long things took, as counts in fixed buckets: two to an octave, from half a millisecond to a day."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import takewhile

_SHORTEST = 0.0005
_LONGEST = 86_400.0

# Bucket n ends where n points, and begins where the one before it ends; the last has no end.
BOUNDS = tuple(takewhile(lambda bound: bound < _LONGEST, (_SHORTEST * 2 ** (n / 2) for n in range(100))))
BUCKETS = len(BOUNDS) + 1


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
