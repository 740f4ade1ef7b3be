"""Where pages are drawn: beside the event loop, which also belongs to the app that the dashboard is mounted in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST: Final = 2  # they share one interpreter: more would only make each other wait


class Threads:
    """A few threads of the dashboard's own: those of the loop are the app's."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something long."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_MOST, thread_name_prefix="rowlock-dashboard")
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))

    def close(self) -> None:
        """End them, until there is work again."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
