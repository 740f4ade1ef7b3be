"""A file of over 400 lines, or a function of over 50, asks to be two; a small file asks to join its neighbour."""

from __future__ import annotations

import ast
import tokenize
from collections import Counter
from io import StringIO
from pathlib import PurePath

from tests.house.reading import PACKAGE, Source, package, project_files

LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 50

LEAST_CODE_OF_A_FILE = 30  # lines without docstrings, comments and blanks
MODULES_OF_A_FOLDER = 26

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

# Small files, and why each is one.
SMALLER = {
    "__main__.py": "`python -m rowlock`",
    "version.py": "read by the build, too",
    "cli/completion.py": "one command, like its neighbours",
    "cli/shared/progress_bar.py": "imports rich's live display, which tables do without",
    "cli/shared/text.py": "how values are shown; times has the same names for how they are typed",
    "cli/shared/times.py": "how times are typed; text has the same names for how they are shown",
    "contrib/django/models.py": "Django looks for it",
    "contrib/django/visitors.py": "imports the dashboard, which is an extra",
    "dashboard/access/cookies.py": "four modules set or read cookies",
    "dashboard/access/visitor.py": "the command line imports it, without a server's packages",
    "dashboard/action.py": "what an action is; every action imports it",
    "dashboard/actions/database.py": "the actions of one page, like its neighbours",
    "dashboard/cache.py": "pages, search and notices import it",
    "dashboard/context.py": "every page and action imports it",
    "dashboard/pages/workers.py": "one page, like its neighbours",
    "db/threads.py": "three rooms import it",
    "demo/app.py": "what `rowlock worker --app` names",
    "workflow/state.py": "execution, context and attempt use it",
    "types.py": "names for users' annotations",
    "demo/database.py": "both faces of the demo import it",
    "model/plain.py": "most values import it",
    "store/stats/server.py": "the statistics and the demo import it",
    "testing/moved.py": "points an app elsewhere; the rest of the room is about jobs and time",
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
    small = {source.name for source in package() if len(lines_of_code(source)) < LEAST_CODE_OF_A_FILE}

    assert {name for name in small if not name.endswith("__init__.py")} == SMALLER.keys()


def lines_of_code(source: Source) -> set[int]:
    """The numbers of the lines that hold code, and not only a docstring or a comment."""
    tokens = tokenize.generate_tokens(StringIO(source.text).readline)
    written = {
        line for token in tokens if token.type not in NO_CODE for line in range(token.start[0], token.end[0] + 1)
    }
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        node.body[0] for node in ast.walk(source.tree) if isinstance(node, documented) and ast.get_docstring(node)
    ]
    return written - {line for one in docstrings for line in range(one.lineno, (one.end_lineno or 0) + 1)}


def test_docstrings_comments_and_blanks_are_no_code() -> None:
    text = '"""Doc."""\n\n# why\nx = 1\ndef f():\n    """Doc\n    more."""\n    return """a\nb"""\n'

    assert lines_of_code(Source(PACKAGE / "x.py", text, ast.parse(text))) == {4, 5, 8, 9}


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
