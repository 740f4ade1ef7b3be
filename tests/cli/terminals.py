"""`rowlock` at a terminal: a person who reads and types."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

_LIMIT = 60.0
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """One run of `rowlock` with a terminal for all three of its streams."""

    def __init__(self, *arguments: str, folder: Path, env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._said = b""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rowlock", *arguments],
            cwd=folder,
            env={**os.environ, "TERM": "xterm", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    @property
    def screen(self) -> str:
        """What it has printed so far, without colours."""
        return _COLOUR.sub("", self._said.decode(errors="replace")).replace("\r\n", "\n")

    def sees(self, words: str) -> None:
        """Read until these words are there; a program that ends first has not said them."""
        while words not in self.screen:
            assert self._read(), f"it ended without {words!r}:\n{self.screen}"

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ended(self) -> int:
        """Read to the end; answers the exit code."""
        while self._read():
            pass
        return self.process.wait(_LIMIT)

    def _read(self) -> bool:
        readable, _, _ = select.select([self._ours], [], [], _LIMIT)
        assert readable, f"it has said nothing for {_LIMIT} s:\n{self.screen}"
        try:
            said = os.read(self._ours, 65_536)
        except OSError:  # what Linux says when the other side is closed
            return False
        self._said += said
        return bool(said)
