"""Writers: every state, every thing to wait for and every code of an explanation is written by something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import get_args

from rowlock.model.explanation import Code
from rowlock.model.record import State
from tests.house.reading import called, migrations, package, statements

# Told from what is stored, by rowlock.shown_state.
SHOWN = {"parked"}


def test_every_state_is_written() -> None:
    states = set(get_args(State))
    schema = "".join(one.without_comments for one in migrations())

    written = states_that_statements_set() | states_that_attempts_end_in()
    allowed = {
        one for listed in re.findall(r"\sstate +text .*check \(state in \((.*?)\)\)", schema) for one in names(listed)
    }

    assert states - SHOWN == written
    assert written <= allowed
    assert set(re.findall(r"then '(\w+)'\s+else state", schema)) == SHOWN


def test_everything_that_a_job_waits_for_is_written() -> None:
    schema = "".join(one.without_comments for one in migrations())
    [allowed] = re.findall(r"\bwaits_for +text check \(waits_for in \((.*?)\)\)", schema)

    blocked = {text for call in calls("Blocked") for text in texts(call.args[0])}
    parked = {
        text for call in calls("Parked") for one in call.keywords if one.arg == "waits_for" for text in texts(one.value)
    }

    assert names(allowed) == blocked | parked


def test_every_code_of_an_explanation_is_given_by_a_cause() -> None:
    given = {text for call in calls("Cause") for text in texts(call.args[0])}

    assert set(get_args(Code)) == given


def states_that_statements_set() -> set[str]:
    text = "\n".join(one.without_comments for one in statements())
    return set(re.findall(r"(?:\bset|,)\s+state = '(\w+)'", text))


def states_that_attempts_end_in() -> set[str]:
    [function] = [function for source in package() for function in source.functions() if function.name == "end_columns"]
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return {text for value in returned if isinstance(value, ast.Tuple) for text in texts(value.elts[0])}


def calls(name: str) -> Iterator[ast.Call]:
    found = [
        call for source in package() for call in source.calls() if called(call) == name and (call.args or call.keywords)
    ]
    assert found, name
    yield from found


def texts(node: ast.AST) -> set[str]:
    """What an expression may be, if it is written out: `"signal" if … else None` is "signal"."""
    match node:
        case ast.Constant(value=str() as text):
            return {text}
        case ast.IfExp(body=one, orelse=other):
            return texts(one) | texts(other)
        case _:
            return set()


def names(listed: str) -> set[str]:
    return set(re.findall(r"'(\w+)'", listed))
