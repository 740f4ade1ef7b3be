"""Whoever enqueues, with an account of what was acknowledged; again until it is, as a careful caller would."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rowlock import Call, Rowlock
from tests.faults.oracle import Oracle

# Between two tries during an outage, and between two calls of the one that goes on beside the test.
_PAUSE = 0.02


class Sender:
    """Enqueues calls, each under a number of its own that is its `n`."""

    def __init__(self, app: Rowlock, oracle: Oracle) -> None:
        self._app = app
        self._oracle = oracle
        self._numbers = itertools.count(1)
        self._stop = threading.Event()
        self.resent = 0

    def send(self, make: Callable[[int], Call[Any]]) -> str:
        """Enqueue one call until it is acknowledged; answers the job's id."""
        n = next(self._numbers)
        self._oracle.write("sent", n=n)
        while True:
            try:
                job = str(self._app.enqueue_many([make(n)])[0].id)
            except Exception as error:  # whatever an outage is to a caller
                self._oracle.write("unanswered", n=n, error=f"{type(error).__name__}: {error}")
                self.resent += 1
                if self._stop.wait(_PAUSE):
                    raise
            else:
                self._oracle.write("acknowledged", n=n, job=job)
                return job

    def send_many(self, count: int, make: Callable[[int], Call[Any]]) -> list[str]:
        """Enqueue many at once, all or none."""
        numbers = list(itertools.islice(self._numbers, count))
        for n in numbers:
            self._oracle.write("sent", n=n)
        jobs = [str(job.id) for job in self._app.enqueue_many([make(n) for n in numbers])]
        for n, job in zip(numbers, jobs, strict=True):
            self._oracle.write("acknowledged", n=n, job=job)
        return jobs

    @contextmanager
    def sending(self, make: Callable[[int], Call[Any]]) -> Iterator[None]:
        """Send one call after the other while the test goes on."""
        over, errors = threading.Event(), list[BaseException]()

        def go_on() -> None:
            try:
                while not over.wait(_PAUSE):
                    self.send(make)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60.0)
            self._stop.set()  # it may be waiting for an acknowledgement that does not come
            thread.join()
        assert errors == []
