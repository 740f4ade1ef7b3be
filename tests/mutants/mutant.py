"""A mutant: a bug that somebody else's users have met, put into a copy of our code, and the tests that must notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "mutants"


@dataclass(frozen=True, slots=True)
class Change:
    """A text of one of our files, and what stands there in the mutant."""

    file: str  # within src/rowlock
    text: str
    instead: str

    def apply(self, source: Path) -> None:
        """Change a copy of our code."""
        path = source / "rowlock" / self.file
        whole = path.read_text()
        assert whole.count(self.text) == 1, f"{self.file} has {whole.count(self.text)} times {self.text!r}, not once"
        path.write_text(whole.replace(self.text, self.instead))


@dataclass(frozen=True, slots=True)
class Mutant:
    """`name` is its number in the museum, `bug` what goes wrong with it, `killer` the test that must fail.

    The killer is a quick test, or `deep` says why only a deep one can notice.
    """

    name: str
    bug: str
    killer: str
    changes: Sequence[Change]
    deep: str = ""


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    HUNG = "killed (the test did not end)"
    LIVES = "LIVES"
    BROKEN = "BROKEN: the test could not be run"


def hunt(mutant: Mutant, *, limit: float = 90.0) -> Fate:
    """Run a mutant's killer against it. What was killed is removed; what lives can be looked at."""
    source = FOLDER / mutant.name / "src"
    shutil.rmtree(source.parent, ignore_errors=True)
    fate = _hunted(mutant, source, limit)
    if fate in KILLED:
        shutil.rmtree(source.parent, ignore_errors=True)
    return fate


def _hunted(mutant: Mutant, source: Path, limit: float) -> Fate:
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    for change in mutant.changes:
        change.apply(source)
    try:
        ended = run_tests([mutant.killer], source=source, limit=limit, quick=not mutant.deep)
    except subprocess.TimeoutExpired:
        return Fate.HUNG
    (source.parent / "said.txt").write_text(ended.stdout + ended.stderr)
    match ended.returncode:
        case 0:
            return Fate.LIVES
        case 1 if "error during collection" not in ended.stdout:
            return Fate.KILLED
        case _:
            return Fate.BROKEN


KILLED = {Fate.KILLED, Fate.HUNG}


def run_tests(
    tests: Sequence[str], *, source: Path, limit: float, quick: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run tests against a copy of our code; the processes that they start use it, too."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", *(["-m", "not deep"] if quick else []), *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
