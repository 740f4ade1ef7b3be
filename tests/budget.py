"""How much of the quick run each folder may take: so many tests, and about so many seconds on two quiet cores."""

from __future__ import annotations

from typing import NamedTuple


class Budget(NamedTuple):
    """The number is held by `tests/house`; the seconds, over all test processes, stand in the report of a run."""

    tests: int
    seconds: int


# With three test processes, the whole run takes a third of the sum of the seconds: less than five minutes.
BUDGET = {
    "tests": Budget(755, 115),
    "tests/benchmarks": Budget(14, 6),
    "tests/cli": Budget(515, 105),
    "tests/contrib": Budget(45, 20),
    "tests/dashboard": Budget(755, 80),
    "tests/db": Budget(490, 55),
    "tests/docs": Budget(45, 4),
    "tests/faults": Budget(430, 155),
    "tests/house": Budget(375, 20),
    "tests/model": Budget(970, 8),
    "tests/store": Budget(250, 35),
    "tests/testing": Budget(130, 20),
    "tests/typing": Budget(4, 2),
    "tests/worker": Budget(505, 160),
    "tests/workflow": Budget(505, 70),
}


def folder_of(test: str) -> str:
    """The folder of a test: `tests/db` for `tests/db/test_pool.py::test_…`, `tests` for what lies there."""
    path = test.partition("::")[0].split("/")
    return "/".join(path[:2]) if len(path) > 2 else path[0]
