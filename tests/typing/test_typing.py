"""The type checkers' view of what users write: mypy and pyright accept the good calls and refuse the bad ones."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.depth import deep

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = ("accepted.py", "declared.py", "refused.py")
ONE_ERROR = re.compile(r"# type: ignore\[[a-z-]+\]  # pyright: ignore\[\w+(, \w+)*\]$")


def checked(*command: str) -> subprocess.CompletedProcess[str]:
    # Without the variable pyright asks a registry for a newer release of itself.
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_mypy_accepts_the_good_calls_and_refuses_the_bad_ones() -> None:
    # A cache of its own: another mypy may be writing the project's.
    paths = [str(HERE / name) for name in FILES]
    done = checked("mypy", "--strict", "--warn-unused-ignores", "--cache-dir=.cache/mypy-typing", *paths)

    assert done.stdout == f"Success: no issues found in {len(FILES)} source files\n", done.stdout + done.stderr


@deep
def test_pyright_accepts_the_good_calls_and_refuses_the_bad_ones() -> None:
    done = checked("pyright", f"--project={HERE}", f"--pythonpath={sys.executable}", "--outputjson")

    answer = json.loads(done.stdout)
    assert answer["generalDiagnostics"] == []
    assert answer["summary"]["filesAnalyzed"] == len([*HERE.glob("*.py")])


def test_every_line_of_the_bad_calls_carries_an_error_for_each_checker() -> None:
    source = (HERE / "refused.py").read_text(encoding="utf-8")
    lines = source.splitlines()

    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    statements = [statement for function in functions for statement in function.body]

    bare = [lines[one.lineno - 1] for one in statements if not ONE_ERROR.search(lines[one.lineno - 1])]
    assert bare == []
    assert len(statements) == source.count("# type: ignore[") == source.count("# pyright: ignore[")
    assert len(statements) >= 50


def test_no_line_of_the_good_calls_hides_an_error() -> None:
    text = "".join((HERE / name).read_text(encoding="utf-8") for name in ("accepted.py", "declared.py"))

    assert "ignore" not in text
    assert "cast(" not in text
