"""Nothing that a job carries is ever run as code or as SQL."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.reading import Source, called, package

UNSAFE_MODULES = {"dill", "cloudpickle", "marshal", "pickle", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}

SAYS = {"execute", "executemany", "copy", "fetch", "exec_driver_sql"}
_CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*")

# Statements made in another way than the rule knows, each with what keeps users' words out of it.
COMPOSED = {
    "db/migrate.py": {
        # Our own files, and a schema's name that model/names.py has checked.
        "script(missing, schema).encode()",
        # Our own words, and names that are made of a checked schema's and of ours.
        "roles.creation([role]).encode()",
        "roles.grants(schema).encode()",
    },
    "db/worker_connection.py": {
        # Channels as identifiers.
        "listens",
    },
    "app/app.py": {
        # An app that copies itself and its tasks; nothing is said.
        "self",
        "self.tasks",
    },
    "db/embedded/disposable.py": {
        # Literals, and names as identifiers.
        "statement + _strategy(connection)",
    },
    "db/session.py": {
        # Our own settings, and a number; said by connect and aconnect alone.
        "said",
        "self.settings",
    },
}


def test_nothing_is_unpickled() -> None:
    wrong = [
        f"{source.name} imports {name}"
        for source in package()
        for name in source.imports()
        if name.split(".")[0] in UNSAFE_MODULES
    ]

    assert wrong == []


def test_nothing_is_evaluated_or_given_to_a_shell() -> None:
    wrong = [
        f"{source.name}:{call.lineno} {ast.unparse(call)}"
        for source in package()
        for call in source.calls()
        if ast.unparse(call.func) in UNSAFE_CALLS
        or any(keyword.arg == "shell" for keyword in call.keywords)
        or called(call) == "create_subprocess_shell"
    ]

    assert wrong == []


def test_what_is_executed_was_written_by_us() -> None:
    wrong = [
        f"{source.name}:{call.lineno} {ast.unparse(call.args[0])}"
        for source in package()
        for call in speeches(source)
        if not is_ours(call.args[0], source) and ast.unparse(call.args[0]) not in COMPOSED.get(source.name, set())
    ]

    assert wrong == []


def test_every_exception_to_that_is_needed() -> None:
    said = {
        source.name: {ast.unparse(call.args[0]) for call in speeches(source) if not is_ours(call.args[0], source)}
        for source in package()
    }

    assert {name: texts for name, texts in COMPOSED.items() if not texts <= said.get(name, set())} == {}


@pytest.mark.parametrize(
    "text",
    [
        'c.execute(f"select {x}")',
        'c.execute("select %s" % x)',
        'c.execute("select " + x)',
        'c.execute("select {}".format(x))',
        'c.execute(sql.SQL(f"select {x}"))',
        "c.execute(sql.SQL(x).format())",
        "c.execute(text)",
        "c.fetch(text)",
        "c.fetch(asked.text)",
        "asked = said()\nc.fetch(asked.text)",
        'def f(text: str) -> None:\n    text = statement("a", "b") + text\n    c.execute(text)',
    ],
)
def test_the_rule_refuses(text: str) -> None:
    source = Source(package()[0].path, text, ast.parse(text))

    assert not all(is_ours(call.args[0], source) for call in speeches(source))


def speeches(source: Source) -> list[ast.Call]:
    """Every call that gives a statement to a connection; `dict.copy()` and the like give none."""
    return [call for call in source.calls() if called(call) in SAYS and call.args]


def is_ours(said: ast.expr, source: Source) -> bool:
    """Whether a text consists of literals, module constants and our .sql files alone."""
    match said:
        case ast.Name(id=name) if not _CONSTANT.fullmatch(name):
            values = assigned(name, source)
            return bool(values) and all(is_ours(value, source) for value in values)
        case ast.JoinedStr(values=parts):
            return all(is_ours(part.value if isinstance(part, ast.FormattedValue) else part, source) for part in parts)
        case ast.Call(func=ast.Attribute(value=template, attr="format")):
            return is_template(template)
        case ast.Constant() | ast.Name() | ast.Call(func=ast.Name(id="statement")):
            return True
        case ast.Attribute(value=ast.Name(id=name), attr="text"):
            values = assigned(name, source)
            return bool(values) and all(is_numbered(value) for value in values)
        case _:
            return is_template(said)


def is_numbered(said: ast.expr) -> bool:
    """Whether this is one of our .sql files, its parameters numbered."""
    match said:
        case ast.Call(func=ast.Name(id="numbered")):
            return True
        case _:
            return False


def is_template(said: ast.expr) -> bool:
    """Whether this is `sql.SQL("…")`, psycopg's own composition, which quotes what `format` puts in."""
    match said:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="sql") | ast.Attribute(attr="sql"), attr="SQL"), args=[text]
        ):
            return isinstance(text, ast.Constant)
        case _:
            return False


def assigned(name: str, source: Source) -> list[ast.expr]:
    """Everything that this file ever assigns to a name."""
    return [
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
