"""A file of over 400 lines, or a function of over 50, asks to be two."""

from __future__ import annotations

from tests.house.reading import package, project_files

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 50

# `file` or `file:function` → why it may be longer. Empty, and meant to stay so.
LONGER: dict[str, str] = {}

NO_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "core",
    "base",
    "manager",
    "managers",
    "misc",
    "lib",
    "tools",
}


def test_no_file_is_too_long() -> None:
    long = {source.name: len(source.text.splitlines()) for source in package()}

    assert {name: lines for name, lines in long.items() if lines > LINES_OF_A_FILE and name not in LONGER} == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{source.name}:{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for source in package()
        for function in source.functions()
    }

    assert {name: lines for name, lines in long.items() if lines > LINES_OF_A_FUNCTION and name not in LONGER} == {}


def test_every_exception_is_explained_and_needed() -> None:
    sizes = {source.name: len(source.text.splitlines()) for source in package()}
    functions = {f"{source.name}:{function.name}" for source in package() for function in source.functions()}

    assert LONGER.keys() <= sizes.keys() | functions
    assert all(LONGER.values())


def test_no_file_has_a_name_that_says_nothing() -> None:
    parts = {part.removesuffix(".py") for path in project_files() for part in path.parts[-3:]}

    assert parts & NO_NAMES == set()
