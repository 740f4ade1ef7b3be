"""The project's files as the house rules read them."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import rowlock

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(rowlock.__file__).resolve().parent  # where it is imported from: a copy of it can be read as well
SQL = PACKAGE / "store" / "sql"
MIGRATIONS = PACKAGE / "store" / "migrations"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Where it lies: `worker/claim.py`, `tests/conftest.py`."""
        return str(self.path.relative_to(PACKAGE if self.path.is_relative_to(PACKAGE) else ROOT))

    @property
    def room(self) -> str:
        """The folder inside the package, or the module that lies beside the folders: `worker`, `app`."""
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def imports(self) -> Iterator[str]:
        """The full name of every module, or name in a module, that is imported, for type checkers too."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    return Source(path, text, ast.parse(text))


@cache
def package() -> tuple[Source, ...]:
    """Every Python file of the package."""
    return tuple(read(path) for path in sorted(PACKAGE.rglob("*.py")))


@cache
def sources_of_tests() -> tuple[Source, ...]:
    """Every Python file of the tests."""
    return tuple(read(path) for path in sorted((ROOT / "tests").rglob("*.py")))


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or would be, committed."""
    # Whoever runs the tests may not be the one who cloned: git would refuse to look.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in sorted(set(listed.split("\0")) - {""}) if (path := ROOT / name).is_file())


def called(call: ast.Call) -> str:
    """What a call calls, by its last name: `execute` of `connection.execute(…)`."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


@dataclass(frozen=True)
class Statement:
    """One file of SQL."""

    path: Path
    text: str
    literal: re.Pattern[str]

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def bare(self) -> str:
        """Without comments and literals."""
        return self.literal.sub("''", self.without_comments)

    @property
    def without_comments(self) -> str:
        return _COMMENT.sub("", self.text)

    @property
    def parameters(self) -> set[str]:
        return set(_PARAMETER.findall(self.without_comments))


_COMMENT = re.compile(r"--.*")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_QUOTED_EITHER_WAY = re.compile(r"\$\$.*?\$\$|" + _QUOTED.pattern, re.DOTALL)
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)\b")


@cache
def statements() -> tuple[Statement, ...]:
    """Every statement that the engine says."""
    found = sorted(SQL.glob("*.sql"))
    return tuple(Statement(path, path.read_text(encoding="utf-8"), _QUOTED_EITHER_WAY) for path in found)


@cache
def migrations() -> tuple[Statement, ...]:
    """Every migration; what stands between $$ there is the body of a function, and SQL like the rest."""
    found = sorted(MIGRATIONS.glob("[0-9]*.sql"))
    return tuple(Statement(path, path.read_text(encoding="utf-8"), _QUOTED) for path in found)


def made_by_migrations(kind: str) -> set[str]:
    """The names of the tables, or functions, that our migrations make."""
    text = "".join(one.without_comments for one in migrations())
    return set(re.findall(rf"^create (?:or replace |unlogged )?{kind} rowlock\.(\w+)", text, re.MULTILINE))
