"""A file of over 400 lines, or a function of over 50, asks to be two; a small file asks to join its neighbour."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from tests.house.reading import package, project_files

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 50

LEAST_LINES_OF_A_FILE = 40
MODULES_OF_A_FOLDER = 26

# Small files, and why each is one.
SMALLER = {
    "__main__.py": "`python -m rowlock`",
    "version.py": "read by the build, too",
    "cli/completion.py": "one command, like its neighbours",
    "cli/shared/progress_bar.py": "imports rich's live display, which tables do without",
    "cli/shared/text.py": "imports nothing: for every command",
    "contrib/django/models.py": "Django looks for it",
    "contrib/django/visitors.py": "imports the dashboard, which is an extra",
    "dashboard/action.py": "what an action is; every action imports it",
    "dashboard/actions/database.py": "the actions of one page, like its neighbours",
    "dashboard/cache.py": "pages, search and notices import it",
    "dashboard/context.py": "every page and action imports it",
    "dashboard/pages/workers.py": "one page, like its neighbours",
    "db/threads.py": "three rooms import it",
    "demo/app.py": "what `rowlock worker --app` names",
    "types.py": "names for users' annotations",
    "store/search_path.py": "connections of three kinds import it",
    "testing/moved.py": "imported only where an app is moved",
}

# `file` or `file:function` → why it may be longer. Few, and meant to stay so.
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


def test_no_file_is_too_small() -> None:
    small = {source.name for source in package() if len(source.text.splitlines()) < LEAST_LINES_OF_A_FILE}

    assert {name for name in small if not name.endswith("__init__.py")} == SMALLER.keys()


def test_no_folder_holds_too_much() -> None:
    modules = Counter(str(PurePath(source.name).parent) for source in package() if source.path.name != "__init__.py")

    assert {folder: count for folder, count in modules.items() if count > MODULES_OF_A_FOLDER} == {}


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
