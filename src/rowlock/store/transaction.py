"""Transactions: conversations on somebody else's connection: all or nothing, with a safe search_path."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

from rowlock.store.query import Conversation, Query, first

T = TypeVar("T")


def all_or_nothing(conversation: Conversation[T], *, inside: bool) -> Conversation[T]:
    """The same conversation, undone when it fails: to a savepoint inside a transaction, else in one of its own."""
    begin, undo, end = (_SET, (_UNDO, _RELEASE), _RELEASE) if inside else (_BEGIN, (_ROLLBACK,), _COMMIT)
    yield begin
    try:
        answer = yield from conversation
    except GeneratorExit:
        raise  # nobody listens any more
    except BaseException:
        with suppress(Exception):  # what failed first is what the caller has to know
            yield from _each(undo)
        raise
    yield end
    return answer


def _each(queries: Iterable[Query[None]]) -> Conversation[None]:
    for query in queries:
        _ = yield query  # a tuple cannot be sent rows, and `yield from` one ends at its second


def undone(conversation: Conversation[T]) -> Conversation[T]:
    """The same conversation inside a transaction, undone however it ends: only its result stays."""
    yield _SET
    try:
        answer = yield from conversation
    except GeneratorExit:
        raise  # nobody listens any more
    except BaseException:
        with suppress(Exception):  # what failed first is what the caller has to know
            yield _UNDO
            yield _RELEASE
        raise
    yield _UNDO
    yield _RELEASE
    return answer


_SET: Query[None] = Query("savepoint_set", {}, first)
_UNDO: Query[None] = Query("savepoint_undo", {}, first)
_RELEASE: Query[None] = Query("savepoint_release", {}, first)
_BEGIN: Query[None] = Query("transaction_begin", {}, first)
_ROLLBACK: Query[None] = Query("transaction_undo", {}, first)
_COMMIT: Query[None] = Query("transaction_commit", {}, first)


# The search_path, for sessions that put names before PostgreSQL's own

_OWN = "pg_catalog"


def with_safe_search_path(conversation: Conversation[T], *, inside: bool) -> Conversation[T]:
    """The same conversation with nothing in front; then the path is as it was. `inside` a transaction or not."""
    before: str = (yield set_search_path(_OWN, local=inside))[0]
    try:
        answer = yield from conversation
    except GeneratorExit:
        raise  # nobody listens any more
    except BaseException:
        with suppress(Exception):  # what failed first is what the caller has to know
            yield set_search_path(before, local=inside)
        raise
    yield set_search_path(before, local=inside)
    return answer


def set_search_path(path: str, *, local: bool) -> Query[str]:
    """Set the search_path, with `local` until the transaction ends; returns what it was."""
    return Query("path_choose", {"path": path, "local": str(local).lower()}, first)


def is_safe_search_path(schemas: list[str]) -> bool:
    """Whether of the schemas that are searched PostgreSQL's own comes first; only tables are looked for in pg_temp."""
    return next((name for name in schemas if not name.startswith("pg_temp")), _OWN) == _OWN
