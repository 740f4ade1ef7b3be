"""Testing: drain jobs, travel in time, fire schedules, assert what was enqueued."""

from rowlock.testing.drain import adrain, drain
from rowlock.testing.drained import Attempt, Drained
from rowlock.testing.enqueued import aassert_enqueued, aassert_not_enqueued, assert_enqueued, assert_not_enqueued
from rowlock.testing.moved import moved
from rowlock.testing.travel import afire, fire, travel

__all__ = [
    "Attempt",
    "Drained",
    "aassert_enqueued",
    "aassert_not_enqueued",
    "adrain",
    "afire",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "fire",
    "moved",
    "travel",
]
