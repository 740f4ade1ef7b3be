"""Writes docs/reference from the code: ./run docs. A house test fails while the files are stale."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_overloads

import click

import rowlock
from rowlock import errors, testing, types
from rowlock.app import jobs, queues, schedules, workflows
from rowlock.app.registry import AppTasks, Declaring
from rowlock.app.workflow import DeclaringWorkflows
from rowlock.cli.program import program

FOLDER = Path(__file__).resolve().parent / "reference"
MIGRATIONS = Path(rowlock.__file__).parent / "store" / "migrations"

WRITTEN = "<!-- Written by ./run docs from the code; changes made here are lost. -->\n"
WIDTH = 100

# Room of the package, or file of the app's → its heading, in the order of the page. A public name from another one asks
# for a line here.
ROOMS = {
    "app.app": "The app",
    "app.tasks": "Tasks and calls",
    "app.workflow": "Workflows",
    "workflow": "Inside a workflow",
    "app.registry": "Declaring them",
    "app.job": "Jobs",
    "worker": "Workers, and inside a handler",
    "model": "Values",
}

# What `app.jobs`, `app.queues`, `app.tasks`, `app.schedules` and `app.workflows` are, and what they return.
OPERATING = {
    name: value
    for module in (jobs, queues, schedules, workflows)
    for name in module.__all__
    if isinstance(value := getattr(module, name), type)
} | {"AppTasks": AppTasks}

# What `app.task` and `tasks.task` are, and `app.workflow` and `tasks.workflow`.
DECLARING = {
    "app.task": Declaring.__call__,
    "app.task.every": Declaring.every,
    "app.workflow": DeclaringWorkflows.__call__,
}

# Classes that users make themselves; of the others, how we make them is nobody's business.
MADE_BY_USERS = {"Rowlock", "Tasks", "travel"}

# The lines of comment above something in a migration.
COMMENT = r"((?:^--[^\n]*\n)*)^"
# Tables that code makes, not a migration.
TABLES_MADE_BY_CODE = {"migrations": "One row per migration applied, and the oldest code that still works with it."}


def api() -> str:
    """Every public name: signature, docstring, methods."""
    public = {name: getattr(rowlock, name) for name in rowlock.__all__ if not name.startswith("__")}
    homes = {name: _home(value) for name, value in public.items()}
    if unknown := set(homes.values()) - ROOMS.keys() - {"errors"}:
        raise LookupError(f"ROOMS has no heading for {', '.join(unknown)}")
    parts = [
        "# The API\n",
        WRITTEN,
        "Imported from `rowlock`; [types of what is returned](#types-of-what-is-returned) from `rowlock.types`.\n",
        "What is raised, from `rowlock.errors`: [errors](errors.md).\n",
        "Verbs that do I/O come in pairs: `x` in sync code, `await ax` in async code.\n",
    ]
    printed: set[str] = set()
    for room, title in ROOMS.items():
        names = {name: public[name] for name, home in homes.items() if home == room}
        parts += [f"## {title}\n", *_entries(names)]
        others: Mapping[str, Mapping[str, object]] = {"app.app": OPERATING, "app.registry": DECLARING}
        beside = others.get(room) or _companions(names.values())
        elsewhere = public.keys() | printed | set(types.__all__)
        parts += _entries({name: value for name, value in beside.items() if name not in elsewhere})
        printed |= beside.keys()
    parts += ["## Types of what is returned\n", "From `rowlock.types`, for annotations.\n"]
    parts += _entries({name: getattr(types, name) for name in types.__all__})
    parts += ["## For your tests\n", "From `rowlock.testing`: see [the guide](../guides/testing.md).\n"]
    return "\n".join([*parts, *_entries({name: getattr(testing, name) for name in testing.__all__})])


def command_line() -> str:
    """The help of every command."""
    parts = ["# The command line\n", WRITTEN, "How to use it: [the guide](../guides/command-line.md).\n"]
    return "\n".join(parts + list(_helps(program, None, "rowlock")))


def raised() -> str:
    """The tree of errors, and each of them."""
    drawing = inspect.cleandoc(errors.__doc__ or "")
    classes = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    ours = {name: value for name, value in classes.items() if value.__module__ == errors.__name__}
    imported = "From `rowlock.errors`; `RowlockError`, `Snooze`, `RetryAfter` and `Cancel` from `rowlock`, too.\n"
    return "\n".join(["# Errors\n", WRITTEN, imported, _fenced(drawing), *_entries(ours)])


def tables() -> str:
    """Tables, columns and functions, with the comments of the migrations."""
    migrations = "\n".join(path.read_text(encoding="utf-8") for path in sorted(MIGRATIONS.glob("[0-9]*.sql")))
    snapshot = (MIGRATIONS / "schema.sql").read_text(encoding="utf-8")
    parts = [
        "# Tables\n",
        WRITTEN,
        "They lie in the schema `rowlock`, or the one you named. Partitions are left out.\n",
        "Read them as you like. Write to `queues`, which is yours; the rest changes through the verbs.\n",
    ]
    found = re.findall(r"^create (?:unlogged )?table rowlock\.(\w+) \(\n((?: .*\n)*)\)", snapshot, re.MULTILINE)
    parts += [_table(name, body, migrations) for name, body in found]
    parts.append("# Functions\n")
    parts += _functions(migrations)
    return "\n".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api,
    "cli.md": command_line,
    "errors.md": raised,
    "tables.md": tables,
}


# Names


def _home(value: object) -> str:
    """The room that a public name comes from, or the file of the app's."""
    _package, room, *rest = value.__module__.split(".")
    return f"{room}.{rest[0]}" if room == "app" else room


def _entries(names: Mapping[str, object]) -> Iterator[str]:
    """Each name with its signature, its docstring and its members; an async twin stands with its verb."""
    for name, value in names.items():
        if name.startswith("a") and name[1:] in names:
            continue
        yield f"### {name}\n"
        yield from _described(name, value, f"a{name}" if f"a{name}" in names else None)


def _described(name: str, value: Any, twin: str | None) -> Iterator[str]:  # noqa: ANN401  whatever is public
    if isinstance(value, property):
        yield f"- `{name}: {_annotation(inspect.signature(value.fget).return_annotation)}`: {_doc(value)}"  # type: ignore[arg-type]
        return
    written = _fields(value) if _is_record(value) else _call(name, value) if _is_called(value) else ""
    if twin:
        written += f"\nawait {twin}(…)" if "\n" in written else f"\nawait {_call(twin, value)}"
    if written:
        yield _fenced(written)
    yield _doc(value)
    if isinstance(value, type):
        members = _members(value)
        for member in members:
            if not (member.startswith("a") and member[1:] in members):
                yield from _described(member, members[member], f"a{member}" if f"a{member}" in members else None)


def _members(kind: type) -> dict[str, object]:
    """Public methods and properties, in the order of the source."""
    return {
        name: value
        for parent in reversed(kind.__mro__)
        if parent.__module__.startswith("rowlock")
        for name, value in vars(parent).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, (property, classmethod, staticmethod)))
    }


def _companions(values: Iterable[object]) -> dict[str, object]:
    """The records that lie beside public ones, because those hold them."""
    modules = [sys.modules[value.__module__] for value in values if _is_record(value)]
    beside = {name: value for module in modules for name, value in vars(module).items()}
    homes = {module.__name__ for module in modules}
    return {
        name: value
        for name, value in beside.items()
        if dataclasses.is_dataclass(value) and getattr(value, "__module__", None) in homes
    }


def _is_record(value: object) -> bool:
    """Whether it is made by us and read by users: a dataclass whose fields have no defaults to begin with."""
    return (
        isinstance(value, type)
        and dataclasses.is_dataclass(value)
        and dataclasses.fields(value)[0].default is dataclasses.MISSING
    )


def _is_called(value: object) -> bool:
    """Whether users call it: a function, or a class that is not only made by us."""
    return (
        not isinstance(value, type)
        or dataclasses.is_dataclass(value)
        or value.__name__ in MADE_BY_USERS
        or (issubclass(value, BaseException) and "__init__" in vars(value))
    )


def _fields(kind: object) -> str:
    """The fields of a record as they stand in the source, with their comments."""
    body = inspect.getsource(kind).partition('"""')[2].partition('"""')[2]  # type: ignore[arg-type]
    return "\n".join(line.strip() for line in body.splitlines() if re.match(r"    \w+: ", line))


def _doc(value: object) -> str:
    return f"{inspect.cleandoc(getattr(value, '__doc__', None) or '')}\n".lstrip("\n")


def _fenced(text: str) -> str:
    return f"```\n{text}\n```\n"


# Signatures


def _call(name: str, value: object) -> str:
    """`name(one: int, two: str = "") -> None`, on one line if it fits."""
    function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    overloads = get_overloads(function) if inspect.isfunction(function) else []
    function = overloads[-1] if overloads else function  # the one with all its options
    signature = inspect.signature(function)  # type: ignore[arg-type]
    given = [parameter for parameter in signature.parameters.values() if parameter.name not in {"self", "cls"}]
    returns = "" if isinstance(value, type) else f" -> {_annotation(signature.return_annotation)}"
    written = list(_parameters(given))
    start = f"await {name}" if inspect.iscoroutinefunction(function) else name
    line = f"{start}({', '.join(written)}){returns}"
    if len(line) <= WIDTH:
        return line
    return f"{start}(\n" + "".join(f"    {one},\n" for one in written) + f"){returns}"


def _parameters(given: list[inspect.Parameter]) -> Iterator[str]:
    """Each as it is declared, with the marks `/` and `*` between them."""
    before = None
    for parameter in given:
        if before == parameter.POSITIONAL_ONLY != parameter.kind:
            yield "/"
        if parameter.kind == parameter.KEYWORD_ONLY and before not in {
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        }:
            yield "*"
        stars = (
            "*"
            if parameter.kind == parameter.VAR_POSITIONAL
            else "**"
            if parameter.kind == parameter.VAR_KEYWORD
            else ""
        )
        kind = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        yield f"{stars}{parameter.name}{kind}{default}"
        before = parameter.kind


def _annotation(annotation: object) -> str:
    if annotation in {inspect.Signature.empty, None}:
        return "None"
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: object) -> str:
    if repr(value) == "<factory>":
        return "…"
    if dataclasses.is_dataclass(value):  # a policy as it stands
        return f"{type(value).__name__}()"
    if callable(value):
        return str(getattr(value, "__name__", "…"))
    return repr(value).replace("datetime.", "")


# Commands


def _helps(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    with command.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH) as context:
        yield f"## {context.command_path}\n\n{_fenced(command.get_help(context).rstrip())}"
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                found = command.get_command(context, child)
                if found is not None and not found.hidden:
                    yield from _helps(found, context, child)


# Tables


def _table(name: str, body: str, migrations: str) -> str:
    above = re.search(
        rf"{COMMENT}create (?:unlogged )?table rowlock\.{name} \(\n((?:[^)].*\n)*)\)", migrations, re.MULTILINE
    )
    described = _prose(above[1]) if above else TABLES_MADE_BY_CODE[name]
    lines = [f"## {name}\n", f"{described}\n", "| column | type | |", "|---|---|---|"]
    for column, rest in re.findall(r"^    (\w+) (.+?),?$", body, re.MULTILINE):
        if column != "constraint":
            lines.append(f"| `{column}` | {_type(rest)} | {_said(column, above[2] if above else '')} |")
    return "\n".join(lines) + "\n"


def _type(rest: str) -> str:
    kind, needed, _ = rest.partition(" not null")
    short = kind.partition(" default ")[0].replace("timestamp with time zone", "timestamptz")
    return f"{short}{'' if needed else ', or null'}"


def _said(column: str, body: str) -> str:
    line = re.search(rf"^    {column}\s.*?-- (.*)$", body, re.MULTILINE)
    return line[1].replace("|", "\\|") if line else ""


def _functions(migrations: str) -> Iterator[str]:
    pattern = rf"{COMMENT}create (?:or replace )?function (rowlock\.\w+\([^)]*\)\s+returns [\w\[\]]+)"
    for above, signature in re.findall(pattern, migrations, re.MULTILINE):
        yield f"{_fenced(re.sub(r'(?m)^    (?=returns)', '', signature))}\n{_prose(above)}\n"


def _prose(comment: str) -> str:
    return " ".join(line.removeprefix("--").strip() for line in comment.splitlines())


def main(folder: Path = FOLDER) -> None:
    """Write every page of the reference."""
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")
        sys.stdout.write(f"written: {name}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
