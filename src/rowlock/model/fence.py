"""The number of an attempt, for resources outside of PostgreSQL."""

from __future__ import annotations

from typing import NamedTuple


class Fence(NamedTuple):
    """A number that grows with every attempt of a job: a resource that has seen a greater one refuses this one.

    `attempt` counts every start of the job, and `timeline` every failover, after which starts may be counted again.
    """

    timeline: int
    attempt: int
