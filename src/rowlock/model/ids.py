"""Ids: UUIDv7 made by the client, so that a lost enqueue can be resent."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from uuid import UUID

# After the version and variant bits, 74 bits are ours: a fresh random start each millisecond, then counted up, so that
# ids of one process are strictly increasing. The top bit of the start is left clear as room for the count.
_RANDOM_BITS = 74
_START_MASK = (1 << (_RANDOM_BITS - 1)) - 1
_RAND_B_BITS = 62
_RAND_B_MASK = (1 << _RAND_B_BITS) - 1

_VERSION = 7

# Below and above every id.
NIL = "00000000-0000-0000-0000-000000000000"
TOP = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class _Clock:
    """The last id made, guarded by a lock; forgotten in a forked child, which would repeat its parent's ids."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.millisecond = 0
        self.tail = 0

    def take(self, count: int) -> tuple[int, int]:
        """Reserve `count` consecutive tails; returns the millisecond and the first tail."""
        with self.lock:
            now = time.time_ns() // 1_000_000
            if now > self.millisecond:
                self.millisecond = now
                self.tail = int.from_bytes(os.urandom(10), "big") & _START_MASK
            start = self.tail
            self.tail += count
            return self.millisecond, start


_clock = _Clock()
os.register_at_fork(after_in_child=_clock.__init__)  # type: ignore[misc]  # a fresh lock and no memory


def made_at(job_id: UUID) -> datetime | None:
    """When one of our ids was made, by its maker's clock; None for any other id."""
    if job_id.version != _VERSION:
        return None
    try:
        return datetime.fromtimestamp((job_id.int >> 80) / 1000, UTC)
    except (OverflowError, ValueError):  # 48 bits of milliseconds go on to the year 10889
        return None


def new_id() -> str:
    """A new id, larger than every id this process made before."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """`count` new ids in increasing order."""
    millisecond, start = _clock.take(count)
    ids: list[str] = []
    while count:
        # Ids that share their upper 66 bits share their first three groups: one of these per batch, all but never two.
        fitting = min(count, _RAND_B_MASK + 1 - (start & _RAND_B_MASK))
        head = f"{(millisecond << 16) | 0x7000 | (start >> _RAND_B_BITS):016x}"
        head = f"{head[:8]}-{head[8:12]}-{head[12:]}"
        low = (1 << 63) | (start & _RAND_B_MASK)
        ids += [f"{head}-{tail[:4]}-{tail[4:]}" for tail in [f"{n:016x}" for n in range(low, low + fitting)]]
        start += fitting
        count -= fitting
    return ids
