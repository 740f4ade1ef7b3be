"""The kinds of connection by name, and how a story about one of them is run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.db.django_site import Django, DjangoAsync
from tests.db.kinds import Asyncpg, AsyncpgPool, Lender, Psycopg, PsycopgAsync, SQLAlchemy, SQLAlchemyAsync
from tests.depth import deep_unless

T = TypeVar("T")


async def a_connection(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


async def a_session(engine: AsyncEngine) -> AsyncSession:
    return AsyncSession(engine)


async def a_scoped_session(engine: AsyncEngine) -> async_scoped_session[AsyncSession]:
    return async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)


SYNC: dict[str, Callable[..., Lender]] = {
    "psycopg": Psycopg,
    "sqlalchemy-connection": partial(SQLAlchemy, make=lambda engine: engine.connect(), closes=True),
    "sqlalchemy-session": partial(SQLAlchemy, make=Session, closes=False),
    "sqlalchemy-scoped-session": partial(
        SQLAlchemy, make=lambda engine: scoped_session(sessionmaker(engine)), closes=False
    ),
    "django": Django,
    "django-alias": partial(Django, by_alias=True),
}
ASYNC: dict[str, Callable[..., Awaitable[Lender]]] = {
    "psycopg-async": PsycopgAsync.open,
    "asyncpg": Asyncpg.open,
    "asyncpg-pool": AsyncpgPool.open,
    **{
        f"sqlalchemy-{name}-{driver}": partial(SQLAlchemyAsync.open, driver=driver, make=make, closes=closes)
        for driver in ("psycopg", "asyncpg")
        for name, make, closes in (
            ("async-connection", a_connection, True),
            ("async-session", a_session, False),
            ("async-scoped-session", a_scoped_session, False),
        )
    },
    "django-async": DjangoAsync.open,
    "django-async-alias": partial(DjangoAsync.open, by_alias=True),
}
KINDS = [*SYNC, *ASYNC]
# One of each library, sync and async: the others are other ways to the same connections, and deep.
USUAL = {"psycopg", "psycopg-async", "asyncpg", "sqlalchemy-session", "sqlalchemy-async-session-psycopg", "django"}
usual = partial(deep_unless, USUAL.__contains__)
every_kind = pytest.mark.parametrize("kind", usual(KINDS))


@asynccontextmanager
async def lender(kind: str, url: str, *, autocommit: bool = False) -> AsyncIterator[Lender]:
    """A caller with an open connection of this kind."""
    opened = SYNC[kind](url, autocommit=autocommit) if kind in SYNC else await ASYNC[kind](url, autocommit=autocommit)
    try:
        yield opened
    finally:
        await opened.end()


def tell(kind: str, story: Coroutine[Any, Any, T]) -> T:
    """Run a story: in an event loop if the kind is async; a sync kind waits for nothing, so it needs none."""
    if kind in ASYNC:
        return asyncio.run(story)
    try:
        story.send(None)
    except StopIteration as end:
        answer: T = end.value
        return answer
    raise AssertionError(f"{kind} is sync, but its story waits for something")
