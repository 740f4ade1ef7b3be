"""What was acknowledged and what took effect, written outside the database under test.

A crash or a failover of PostgreSQL would take evidence that lies in it along with the crime. Each process appends lines
to a file of its own, each line on disk before its writer goes on.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER_VARIABLE = "ROWLOCK_FAULT_ORACLE"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened: what, when (by the clock that the server under test shares), in which process."""

    what: str
    at: float
    pid: int
    facts: dict[str, Any]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  as it was written
        return self.facts[name]


@dataclass
class Oracle:
    """The files in one folder."""

    folder: Path
    _files: dict[int, int] = field(default_factory=dict)
    _read: dict[Path, tuple[int, list[Line]]] = field(default_factory=dict)

    @classmethod
    def of_environment(cls) -> Oracle:
        """The one that a worker's handlers write to."""
        return cls(Path(os.environ[FOLDER_VARIABLE]))

    def write(self, what: str, **facts: object) -> None:
        """Write a line; it is on disk when this returns. Any thread and any process may."""
        text = json.dumps({"what": what, "at": time.time(), "pid": os.getpid(), **facts}) + "\n"
        file = self._file()
        os.write(file, text.encode())  # one write, to a file opened for appending: lines never mix
        os.fsync(file)

    def _file(self) -> int:
        pid = os.getpid()  # a forked child has files of its own
        if pid not in self._files:
            path = self.folder / f"{pid}.lines"
            self._files[pid] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return self._files[pid]

    def read(self, *whats: str) -> list[Line]:
        """Every line, or those of these kinds, in the order of time."""
        lines = [line for path in self.folder.glob("*.lines") for line in self._lines(path)]
        return sorted((line for line in lines if not whats or line.what in whats), key=lambda line: line.at)

    def _lines(self, path: Path) -> list[Line]:
        """Those of one file; tests look again and again, so what was read is kept."""
        offset, lines = self._read.get(path, (0, []))
        with path.open("rb") as file:
            file.seek(offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        if newline:
            lines += [_line(text) for text in whole.decode().splitlines()]
            self._read[path] = (offset + len(whole) + 1, lines)
        return lines

    def by(self, name: str, *whats: str) -> dict[Any, list[Line]]:
        """The same, by one of their facts."""
        found: dict[Any, list[Line]] = defaultdict(list)
        for line in self.read(*whats):
            found[line[name]].append(line)
        return found

    def open_gate(self, name: str) -> None:
        """Let the handlers that wait at this gate go on."""
        (self.folder / f"{name}.gate").touch()

    def open_gate_to(self, name: str, pid: int) -> None:
        """Let those go on that wait at this gate in one process."""
        (self.folder / f"{name}.{pid}.gate").touch()

    def gate_is_open(self, name: str) -> bool:
        """Whether they may."""
        return any((self.folder / f"{each}.gate").exists() for each in (name, f"{name}.{os.getpid()}"))

    def close(self) -> None:
        """Close this process's file."""
        file = self._files.pop(os.getpid(), None)
        if file is not None:
            os.close(file)


def _line(text: str) -> Line:
    facts = json.loads(text)
    return Line(facts.pop("what"), facts.pop("at"), facts.pop("pid"), facts)
