"""Search path: a safe one, for sessions that put names before PostgreSQL's own."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

from rowlock.store.query import Conversation, Query, first

T = TypeVar("T")

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
