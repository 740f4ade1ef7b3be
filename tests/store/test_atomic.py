"""What is said around a conversation that must leave no trace, or none when it fails."""

from __future__ import annotations

import pytest

from rowlock.db.session import converse
from rowlock.store.query import Conversation, Query, Statement, first
from rowlock.store.transaction import all_or_nothing, undone


class Listener:
    """Hears what is said, and fails at one statement."""

    def __init__(self, *, fails_at: str | None = None) -> None:
        self.heard: list[str] = []
        self._fails_at = fails_at

    def run(self, said: Statement) -> list[str]:
        self.heard.append(said.name)
        if said.name == self._fails_at:
            raise ValueError(said.name)
        return ["row"]


def one_question() -> Conversation[str]:
    rows: list[str] = yield Query("schema_now", {}, first)
    return rows[0]


def test_what_fails_inside_a_transaction_is_undone_and_its_savepoint_let_go_of() -> None:
    listener = Listener(fails_at="schema_now")

    with pytest.raises(ValueError, match="schema_now"):
        converse(listener.run, all_or_nothing(one_question(), inside=True))

    assert listener.heard == ["savepoint_set", "schema_now", "savepoint_undo", "savepoint_release"]


def test_what_is_only_tried_is_undone_and_answers() -> None:
    listener = Listener()

    answer = converse(listener.run, undone(one_question()))

    assert answer == "row"
    assert listener.heard == ["savepoint_set", "schema_now", "savepoint_undo", "savepoint_release"]


def test_what_is_only_tried_and_fails_is_undone_too() -> None:
    listener = Listener(fails_at="schema_now")

    with pytest.raises(ValueError, match="schema_now"):
        converse(listener.run, undone(one_question()))

    assert listener.heard == ["savepoint_set", "schema_now", "savepoint_undo", "savepoint_release"]
