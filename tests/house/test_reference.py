"""docs/reference is what the code says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.reading import ROOT

WRITTEN = ROOT / "docs" / "reference"


def test_the_reference_is_not_stale(tmp_path: Path) -> None:
    # In a Python of its own: click remembers in a command how its help was first asked for.
    subprocess.run([sys.executable, "-m", "docs.generate", str(tmp_path)], cwd=ROOT, check=True)

    now = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in WRITTEN.iterdir()}
    stale = [name for name in sorted(now.keys() | kept.keys()) if now.get(name) != kept.get(name)]
    assert not stale, f"docs/reference has stale pages, {', '.join(stale)}; write them anew: ./run docs"
