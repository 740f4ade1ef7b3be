"""What users see: the public names, the commands, and that both are documented."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator

import click
import pytest

import rowlock
from rowlock import errors, testing, types
from rowlock.app import verbs
from rowlock.app.jobs import Jobs
from rowlock.app.queues import AppQueues
from rowlock.app.registry import AppTasks
from rowlock.app.schedules import Schedules
from rowlock.app.tasks import Using
from rowlock.app.workflows import Workflows
from rowlock.cli.program import program
from rowlock.contrib import django
from tests.house.reading import PACKAGE, ROOT, read

# What users hold; verbs that do I/O come in pairs there, x and ax.
HELD = (
    rowlock.Rowlock,
    Jobs,
    AppQueues,
    AppTasks,
    Schedules,
    Workflows,
    rowlock.Job,
    rowlock.Task,
    rowlock.Call,
    Using,
)
PAIRS = [
    (kind, name)
    for kind in HELD
    for name, value in vars(kind).items()
    if inspect.isfunction(value) and not name.startswith("_") and f"a{name}" in vars(kind)
]


ERRORS = [
    name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
]
PUBLIC = {
    **{name: getattr(rowlock, name) for name in rowlock.__all__},
    **{name: getattr(types, name) for name in types.__all__},
    **{name: getattr(errors, name) for name in ERRORS},
}


def imported() -> list[str]:
    tree = read(PACKAGE / "__init__.py").tree
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "rowlock" in str(node.module)]
    return [alias.asname or alias.name for node in nodes for alias in node.names]


def documents() -> str:
    # The reference names everything because it is written from the code: that explains nothing.
    pages = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "reference"]
    paths = [ROOT / "README.md", *pages]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def commands(group: click.Command, path: str = "rowlock") -> Iterator[str]:
    if not isinstance(group, click.Group):
        yield path
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from commands(command, f"{path} {name}")


def test_the_package_exports_what_it_imports_and_nothing_else() -> None:
    assert sorted(imported()) == rowlock.__all__
    assert rowlock.__all__ == sorted(set(rowlock.__all__))


def test_the_package_file_holds_nothing_but_names() -> None:
    _docstring, *rest = read(PACKAGE / "__init__.py").tree.body
    functions = [node.name for one in rest for node in ast.walk(one) if isinstance(node, ast.FunctionDef)]

    assert {type(node) for node in rest} == {ast.ImportFrom, ast.If, ast.Assign}
    assert functions == ["__getattr__"]


def test_the_package_says_what_it_lacks() -> None:
    with pytest.raises(AttributeError, match="module 'rowlock' has no attribute 'Retries'"):
        _ = rowlock.Retries  # type: ignore[attr-defined]


def test_the_types_are_what_their_file_imports() -> None:
    nodes = [node for node in read(PACKAGE / "types.py").tree.body if isinstance(node, ast.ImportFrom)]

    assert types.__all__ == sorted(alias.name for node in nodes for alias in node.names)
    assert not {*types.__all__, *ERRORS} & {*rowlock.__all__} - {"Cancel", "RetryAfter", "RowlockError", "Snooze"}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring(name: str) -> None:
    value = PUBLIC[name]

    # A dataclass without one gets its signature for a docstring.
    assert value.__doc__
    assert not value.__doc__.startswith(f"{name}(")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_method_has_a_docstring(name: str) -> None:
    value = PUBLIC[name]
    own = (
        {key: member for key, member in vars(value).items() if not key.startswith("_")}
        if isinstance(value, type)
        else {}
    )

    assert [key for key, member in own.items() if callable(member) and not member.__doc__] == []


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_verb_that_does_io_has_an_async_twin_of_the_same_signature(kind: type, name: str) -> None:
    one, other = vars(kind)[name], vars(kind)[f"a{name}"]

    assert inspect.signature(one) == inspect.signature(other)
    assert inspect.iscoroutinefunction(other)
    assert not inspect.iscoroutinefunction(one)
    assert other.__name__ == f"a{name}"


@pytest.mark.parametrize("kind", HELD)
def test_no_verb_is_without_its_twin(kind: type) -> None:
    functions = {name: value for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"}
    paired = {name for one, name in PAIRS if one is kind}
    coroutines = {name for name, value in functions.items() if inspect.iscoroutinefunction(value)}
    made_by_verb = {name for name, value in functions.items() if value.__code__.co_filename == verbs.__file__}

    assert coroutines == {f"a{name}" for name in paired}
    assert made_by_verb <= paired | coroutines


def test_every_public_name_is_in_the_documents() -> None:
    text = documents()

    missing = [name for name in PUBLIC if not re.search(rf"\b{name}\b", text)]
    assert not missing, f"neither README.md nor docs/ mentions {', '.join(missing)}"


@pytest.mark.parametrize("name", testing.__all__)
def test_a_name_for_tests_has_a_docstring_and_is_in_its_guide(name: str) -> None:
    guide = (ROOT / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")

    assert getattr(testing, name).__doc__
    assert re.search(rf"\b{name}\b", guide)


@pytest.mark.parametrize("name", ["assert_enqueued", "assert_not_enqueued", "drain", "fire"])
def test_a_verb_for_tests_has_an_async_twin_of_the_same_signature(name: str) -> None:
    assert inspect.signature(getattr(testing, name)) == inspect.signature(getattr(testing, f"a{name}"))


@pytest.mark.parametrize("name", django.__all__)
def test_a_name_for_django_has_a_docstring_and_is_in_its_guide(name: str) -> None:
    guide = (ROOT / "docs" / "guides" / "django.md").read_text(encoding="utf-8")

    assert getattr(django, name).__doc__
    assert re.search(rf"\b{name}\b", guide)


def test_every_command_is_in_the_documents() -> None:
    text = documents()

    missing = [command for command in commands(program) if not re.search(rf"\b{command}\b", text)]
    assert not missing, f"neither README.md nor docs/ mentions {', '.join(missing)}"


def test_every_error_is_drawn_in_the_tree() -> None:
    errors = read(PACKAGE / "errors.py").tree
    classes = [node.name for node in errors.body if isinstance(node, ast.ClassDef)]
    drawing = ast.get_docstring(errors) or ""

    assert [name for name in classes if not re.search(rf"^\W*{name}\b", drawing, re.MULTILINE)] == []
