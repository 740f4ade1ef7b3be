"""What the repository must not hold."""

from __future__ import annotations

import ast
import re
import shutil

import pytest

from tests.house.reading import ROOT, Source, called, project_files, sources_of_tests

pytestmark = pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="these rules are about a git checkout"
)

# With a letter in brackets, because this file is searched too.
PROMISES = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b")
HOMES = re.compile(r"/hom[e]/[a-z]\w*|/User[s]/[A-Za-z]\w*|/roo[t]/\w|[A-Z]:\\User[s]\\")
REGISTRIES = re.compile(
    r"\b(?:pypi\.or[g]|files\.pythonhosted\.or[g]|registry\.npmjs\.or[g]|registry\.yarnpkg\.co[m]|ghcr\.i[o]|docker\.i[o]|quay\.i[o])\b"
)
BINARY = {".gif", ".ico", ".jpg", ".png", ".svg", ".webp", ".woff2"}


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in project_files():
        if path.suffix not in BINARY:
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [
                f"{path.relative_to(ROOT)}:{n} {line.strip()}"
                for n, line in enumerate(lines, 1)
                if pattern.search(line)
            ]
    return found


def test_nothing_is_left_for_later() -> None:
    assert lines_with(PROMISES) == []


def test_no_file_names_somebodys_home() -> None:
    assert lines_with(HOMES) == []


def test_no_file_names_a_registry() -> None:
    assert lines_with(REGISTRIES) == []


@pytest.mark.parametrize("name", ["dev.txt", "demo.txt"])
def test_the_locked_packages_are_hashes_without_a_place(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    packages = re.split(r"\n(?! )", text.strip())

    assert "://" not in text
    assert [
        one
        for one in packages
        if not re.fullmatch(r"[\w.\[\],-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+", one)
    ] == []


def test_no_lock_file_that_names_hosts_is_kept() -> None:
    assert {path.name for path in project_files()} & {
        "uv.lock",
        "poetry.lock",
        "pdm.lock",
        "package-lock.json",
    } == set()


def test_no_test_sleeps() -> None:
    asleep = [
        f"{source.name}:{call.lineno} {ast.unparse(call)}" for source in sources_of_tests() for call in sleeps(source)
    ]

    assert asleep == []


def test_no_test_pretends_to_be_the_database() -> None:
    pretence = {"unittest.mock", "mock", "pytest_mock", "fakeredis"}

    wrong = [
        f"{source.name} imports {name}"
        for source in sources_of_tests()
        for name in source.imports()
        if name in pretence or name.rpartition(".")[0] in pretence
    ]

    assert wrong == []


@pytest.mark.parametrize("text", ["time.sleep(1)", "from time import sleep\nsleep(0.1)", "asyncio.sleep(x)"])
def test_the_rule_finds_a_sleeper(text: str) -> None:
    assert sleeps(Source(ROOT / "tests" / "x.py", text, ast.parse(text)))


def test_giving_way_to_the_loop_is_no_sleep() -> None:
    assert not sleeps(Source(ROOT / "tests" / "x.py", "", ast.parse("asyncio.sleep(0)")))


def sleeps(source: Source) -> list[ast.Call]:
    """Calls that wait for time to pass; asyncio.sleep(0) only gives way, and a workflow that sleeps holds nothing."""
    return [
        call
        for call in source.calls()
        if called(call) == "sleep"
        and not ast.unparse(call.func).startswith("ctx.")
        and not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
    ]
