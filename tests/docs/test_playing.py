"""The play itself: a page that does not do what it says is found out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import Page
from tests.docs.parsing import parse_dockerfile, parse_ini, parse_yaml
from tests.docs.playing import Stage, matches

Play = Callable[[str], None]


@pytest.fixture
def play(tmp_path: Path, url: str) -> Play:
    """Plays a page of this text."""

    def run(text: str) -> None:
        path = tmp_path / "page.md"
        path.write_text(text, encoding="utf-8")
        with Stage(Page(path), tmp_path, url) as stage:
            stage.play()

    return run


def fenced(language: str, *lines: str) -> str:
    return "\n".join(["", f"```{language}", *lines, "```", ""])


SHOP = fenced(
    "python",
    "# shop.py",
    "from rowlock import Rowlock",
    "app = Rowlock()",
    "@app.task",
    "async def greet(name: str) -> None:",
    '    print(f"hello {name}")',
)


def test_a_page_is_played_from_the_top(play: Play, tmp_path: Path) -> None:
    page = (
        SHOP
        + "\n<!-- python\nimport shop\n-->\n"
        + fenced("python", 'shop.greet.enqueue("Ada")', 'await shop.greet.aenqueue("Eve")')
        + fenced("console", "$ rowlock worker --app shop:app", "…", "hello Ada", "hello Eve", "^C")
        + fenced("console", "$ echo one; echo two > said.txt", "one", "$ cat said.txt", "t…o")
        + fenced("sql", "select rowlock.enqueue('shop.greet', '{\"name\": \"Max\"}')")
    )

    play(page)

    assert (tmp_path / "said.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (fenced("console", "$ echo one", "two"), "printed, not what the page shows"),
        (fenced("console", "$ echo one", "$ false"), "exit code 1"),
        (fenced("console", "$ sleep 100 &", "$ false"), "exit code 1"),
        (fenced("console", "$ echo early &", "late"), "not what the page shows:\nearly"),
        (
            fenced("console", "$ trap 'exit 3' TERM; >begun; sleep 9 &", "$ until [ -e begun ]; do :; done"),
            "exit code 3",
        ),
        (fenced("console", "output first"), "begins with a command"),
        (fenced("console", "$ ./run nonsense"), "no command 'nonsense'"),
        (fenced("python", "x = 1", "x.nonsense"), "page.md:3 fails"),
        (fenced("python", "raise SystemExit"), "SystemExit"),
        (fenced("python", "import os", "os._exit(0)"), "ended Python"),
        (fenced("bash", "true"), "nobody checks"),
        (fenced("", "$ true"), "say ```console"),
    ],
)
def test_a_page_that_is_wrong_is_found_out(play: Play, wrong: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        play(wrong)


def test_a_file_must_compile_and_sql_must_run(play: Play) -> None:
    with pytest.raises(SyntaxError):
        play(fenced("python", "# shop.py", "def"))
    with pytest.raises(Exception, match="does not exist"):
        play(fenced("sql", "select * from rowlock.nonsense"))


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        (["a"], ["a"]),
        (["a…", "…"], ["abc"]),
        (["…", "b", "…"], ["a", "b", "c", "d"]),
        (["a … c"], ["a b c"]),
        (["(a)*"], ["(a)*"]),
    ],
)
def test_output_matches(expected: list[str], lines: list[str]) -> None:
    assert matches(expected, lines)


@pytest.mark.parametrize(("expected", "lines"), [(["a"], ["a", "b"]), (["a", "b"], ["a"]), (["a…c"], ["a", "c"])])
def test_output_does_not_match(expected: list[str], lines: list[str]) -> None:
    assert not matches(expected, lines)


@pytest.mark.parametrize(
    "text", ["a:\n\tb: 1", "a: 1\n  b: 2", "a:\n   b: 2", "a: [1, 2", "a:\n  b: 1\n c: 2", "words"]
)
def test_yaml_out_of_shape_is_found_out(text: str) -> None:
    with pytest.raises(AssertionError):
        parse_yaml(text)


def test_yaml_in_shape_is_let_pass() -> None:
    parse_yaml("a:\n  b:\n    - name: x  # why\n      args: [1, 2]\n    - name: y\n  c: 1\n---\nd: 2\n")


def test_other_files_out_of_shape_are_found_out() -> None:
    with pytest.raises(AssertionError):
        parse_dockerfile("RUN true")
    with pytest.raises(AssertionError):
        parse_dockerfile("FROM python\nNONSENSE x")
    with pytest.raises(Exception, match="no section"):
        parse_ini("a=1")
