"""One word per concept, in Python and in SQL alike."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

from tests.house.reading import Source, migrations, package, statements

# The word we do not say → the one we say. Words that have an honest second meaning (message, kind, run, version, lock,
# event, finish, lifeline) are not here.
INSTEAD = {
    "ack": "settle",
    "acknowledge": "settle",
    "nack": "settle",
    "beat": "schedule",
    "canvas": "graph",
    "chain": "graph",
    "chord": "graph",
    "checkpoint": "step",
    "consumer": "worker",
    "producer": "whoever enqueues",
    "dedupe": "key",
    "dequeue": "claim",
    "eta": "run_at",
    "fetch": "claim",
    "heartbeat": "lease, renew",
    "hibernate": "park",
    "janitor": "upkeep",
    "maintenance": "upkeep",
    "periodic": "schedule",
    "reap": "rescue",
    "reaper": "rescue",
    "reserve": "claim",
    "saga": "workflow",
    "suspend": "park",
    "visibility": "lease",
    # and in more than one word
    "dedupe_id": "key",
    "fetch_job": "claim",
    "job_type": "task",
    "lock_id": "token",
    "max_retries": "attempts",
    "scheduled_at": "run_at",
    "ttl_ms": "a timedelta",
}
# Verbs of speech and sight that say nothing of what a thing is. No class, function of a module, or module is called so.
NO_NAMES = frozenset(
    (
        *("asked", "said", "told", "seen", "found", "known", "wanted", "look", "lately"),
        *("desk", "play", "stage", "ground", "did", "elsewhere"),
    )
)
WORDS_OF_A_MODULE = 15
_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def names_given(source: Source) -> Iterator[str]:
    """Every name that this file gives to something: what it only uses was named by others."""
    yield source.path.stem
    for node in ast.walk(source.tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            case _:
                pass


def faults(names: Iterable[str]) -> set[str]:
    """The names that say it in a wrong word, with the right one."""
    found = set()
    for name in names:
        pieces = [name, *(piece.lower().removesuffix("s") for piece in _PIECES.findall(name))]
        found |= {f"{name}: say {INSTEAD[piece]}" for piece in pieces if piece in INSTEAD}
    return found


def test_python_says_one_word_per_concept() -> None:
    wrong = {source.name: faults(names_given(source)) for source in package()}

    assert {name: words for name, words in wrong.items() if words} == {}


def test_a_thing_is_named_by_what_it_is() -> None:
    wrong = [
        f"{source.name}: {name}"
        for source in package()
        for name in (source.path.stem, *(node.name for node in definitions(source)))
        if name.lower() in NO_NAMES
    ]

    assert wrong == []


def test_the_name_of_a_class_is_used_once() -> None:
    where = defaultdict(list)
    for source in package():
        for node in definitions(source):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(source.name)

    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_a_docstring_says_returns() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    wrong = [
        f"{source.name}: {docstring.splitlines()[0]}"
        for source in package()
        for node in ast.walk(source.tree)
        if isinstance(node, documented) and (docstring := ast.get_docstring(node) or "").startswith("Answer")
    ]

    assert wrong == []


def test_a_module_says_in_one_short_line_what_it_is() -> None:
    first = {source.name: (ast.get_docstring(source.tree) or "").partition("\n")[0] for source in package()}

    assert {name: line for name, line in first.items() if len(line.split()) > WORDS_OF_A_MODULE} == {}


def definitions(source: Source) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The classes and functions of a module, not what is inside of them."""
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_sql_says_one_word_per_concept() -> None:
    wrong = {one.path.name: faults(re.findall(r"\w+", one.bare)) for one in (*statements(), *migrations())}

    assert {name: words for name, words in wrong.items() if words} == {}


def test_statements_are_named_by_noun_and_verb() -> None:
    assert [one.path.name for one in statements() if not re.fullmatch(r"[a-z]+(_[a-z]+)+\.sql", one.path.name)] == []


@pytest.mark.parametrize("name", ["heartbeat", "fetch_jobs", "JobConsumer", "reapers", "scheduled_at", "send_ACK"])
def test_the_rule_finds_a_wrong_word_in(name: str) -> None:
    assert faults([name])


@pytest.mark.parametrize("name", ["back", "package", "metadata", "details", "claimed", "unreachable", "Beating"])
def test_the_rule_passes_over_an_innocent(name: str) -> None:
    assert not faults([name])
