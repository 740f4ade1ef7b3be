"""One word per concept, in Python and in SQL alike."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.house.reading import PACKAGE, Source, migrations, package, statements

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
# Verbs of speech and sight that say nothing of what a thing is. No class, function, method, alias, constant or module
# has such a name, nor with an underscore before it.
NO_NAMES = frozenset(
    (
        *("asked", "said", "told", "seen", "found", "known", "wanted", "look", "lately"),
        *("desk", "play", "stage", "ground", "did", "elsewhere"),
    )
)
WORDS_OF_A_MODULE = 15
# "Noun: what it does", the noun in a few words; some are what one types or imports.
FORM_OF_A_MODULE = re.compile(r"(?:[A-Z][^:.]{0,60}|`[^`]+`[^:.]{0,40}): \S")
# What a native reader would stumble over, in docstrings, help, messages and comments of SQL → what we say.
PHRASES = {
    r"\b[Aa]nswers(?= (?!are\b|a wait\b))": "returns",
    r"\b[Mm]end(?:s|ed|ing)?\b": "fix",
    r"\bfor ever\b": "forever",
    r"\bbelongs into\b": "belongs in",
    r"\bis no (?:\w+ ){0,3}\w+; (?:write|give|use|take)\b": "is not a",
}
# In Python alone: SQL has them as names.
PHRASES_OF_PYTHON = PHRASES | {r"\banew\b": "again", r"\blately\b": "recently"}
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


def things_named(source: Source) -> Iterator[str]:
    """The names of a module, its classes, functions and methods, and its aliases and constants."""
    yield source.path.stem
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
    for node in source.tree.body:
        match node:
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass


def says_nothing(name: str) -> bool:
    return name.strip("_").lower() in NO_NAMES


def test_a_thing_is_named_by_what_it_is() -> None:
    wrong = [f"{source.name}: {name}" for source in package() for name in things_named(source) if says_nothing(name)]

    assert wrong == []


@pytest.mark.parametrize("text", ["_SAID = 1", "Told = int", "class A:\n    def _look(self): ..."])
def test_the_rule_finds_a_name_that_says_nothing(text: str) -> None:
    source = Source(PACKAGE / "x.py", text, ast.parse(text))

    assert any(map(says_nothing, things_named(source)))


def test_the_name_of_a_class_is_used_once() -> None:
    where = defaultdict(list)
    for source in package():
        for node in definitions(source):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(source.name)

    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def odd_phrases(text: str, phrases: Mapping[str, str]) -> list[str]:
    """The phrases of a text that read oddly, each with what to say."""
    return [f"{match[0]}: say {instead}" for phrase, instead in phrases.items() for match in re.finditer(phrase, text)]


def test_docstrings_help_and_messages_are_plain_english() -> None:
    wrong = {
        f"{source.name}:{node.lineno}": odd
        for source in package()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (odd := odd_phrases(node.value, PHRASES_OF_PYTHON))
    }

    assert wrong == {}


def test_templates_and_comments_of_sql_are_plain_english() -> None:
    texts = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
        for pattern in ("*.html", "*.sql")
        for path in PACKAGE.rglob(pattern)
    }

    assert {name: odd for name, text in texts.items() if (odd := odd_phrases(text, PHRASES))} == {}


@pytest.mark.parametrize(
    "text",
    ["; answers how many", "Answers the job", "to be mended", "waits for ever", "'x' is no length of time; write 2h"],
)
def test_the_rule_finds_an_odd_phrase_in(text: str) -> None:
    assert odd_phrases(text, PHRASES)


@pytest.mark.parametrize("text", ["for every job", "`answers` are read", "the answers are", "there is no task; run it"])
def test_the_rule_passes_over_a_plain(text: str) -> None:
    assert not odd_phrases(text, PHRASES)


def test_a_module_says_in_one_short_line_what_it_is() -> None:
    first = {
        source.name: (ast.get_docstring(source.tree) or "").partition("\n")[0] for source in package() if source.text
    }
    wrong = {
        name: line
        for name, line in first.items()
        if len(line.split()) > WORDS_OF_A_MODULE or not FORM_OF_A_MODULE.match(line)
    }

    assert wrong == {}


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
