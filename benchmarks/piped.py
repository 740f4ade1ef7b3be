"""A Python program of ours in a process of its own, spoken to in lines; it ends when its input does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from benchmarks.measure import Broken

_ENDS_WITHIN = 60.0


class Piped:
    """The benchmark's end of the pipes. What the program says on standard error goes where ours goes."""

    def __init__(self, module: str, *args: str, environment: Mapping[str, str] | None = None) -> None:
        self._module = module
        self._args = args
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module, *self._args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
            # Ctrl-C is for us alone; the program leaves in good order when we close its input.
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._process.communicate(timeout=_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        if self._process.returncode != 0 and error is None:
            raise Broken(f"{self._module} ended with status {self._process.returncode}; what it said is above")

    def say(self, words: str) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """Wait for a line."""
        assert self._process.stdout is not None
        words = self._process.stdout.readline()
        if not words:
            raise Broken(f"{self._module} ended before its time; what it said is above")
        return words
