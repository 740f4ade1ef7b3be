"""Django's databases: an address from an alias in settings.DATABASES."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asgiref.sync import AsyncToSync, SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.core.cache import close_caches
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections, reset_queries
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.signals import connection_created
from django.utils.connection import ConnectionProxy
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from rowlock.db.address import Address
from rowlock.errors import NotConfigured


def address(alias: str) -> Address:
    """Where Django connects to under this alias now; in tests that is the test database."""
    source = f"settings.DATABASES[{alias!r}]"
    if (fault := missing(alias)) is not None:
        raise NotConfigured(fault)
    theirs = connections[alias]
    if theirs.vendor != "postgresql":
        raise NotConfigured(
            f"{source} is a {theirs.vendor} database; Rowlock runs on PostgreSQL: name the alias of one"
        )
    return Address(source, conninfo=make_conninfo(**_libpq_options(theirs)))


def missing(alias: str) -> str | None:
    """The sentence for an alias that the settings do not have."""
    if alias in connections.settings:
        return None
    return f"there is no settings.DATABASES[{alias!r}]; it has {', '.join(sorted(connections.settings))}"


def same_database(alias: str) -> dict[str, bool]:
    """The other aliases of the same database, in tests at least; False: perhaps it is, as through a pooler."""
    ours, found = connections.settings[alias], dict[str, bool]()
    for other in connections.settings:
        theirs = connections.settings[other]
        mirrors = theirs["TEST"].get("MIRROR") == alias or ours["TEST"].get("MIRROR") == other
        is_named_alike = all(ours[part] == theirs[part] for part in ("ENGINE", "NAME"))
        if other != alias and (mirrors or is_named_alike):
            found[other] = mirrors or all(ours[part] == theirs[part] for part in ("HOST", "PORT"))
    return found


def connection(alias: str) -> object:
    """Django's connection under this alias, whichever thread uses it."""
    return ConnectionProxy(connections, alias)


class DjangoDatabase:
    """Django, as it knows the connection under an alias: what it allows, and what it has open."""

    source = "Django's settings.DATABASES"

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def check(self) -> None:
        """Raise the error of a test that may not use the database, Django's or pytest-django's.

        Both patch what connects: Django before 5.1 the wrapper of the test's thread, the others its class. A copy asks
        the class; without a `connect` it opens nothing.
        """
        if self._alias not in connections.settings:
            return  # an error that `address` words
        asked = self._wrapper().copy()
        asked.connect = lambda: None
        with suppress(SynchronousOnlyOperation):  # on an event loop it is the last thing to be refused
            asked.ensure_connection()

    def block(self) -> object | None:
        """Django's connection, inside of an atomic block in this thread."""
        if self._alias not in connections.settings:
            return None  # an error that `address` words
        own = self._wrapper()
        return own if own.in_atomic_block else None

    def _wrapper(self) -> Any:  # noqa: ANN401  Django has no types
        """This thread's wrapper; raises the error of the test that has patched it."""
        own = connections[self._alias]
        patched = vars(own).get("connect")
        if type(patched).__name__ == "_DatabaseFailure":  # any other patch may connect
            patched()
        return own

    async def ablock(self) -> object | None:
        """Django's connection, inside of an atomic block in the thread of its async verbs."""
        return connection(self._alias) if await sync_to_async(self.block)() is not None else None


def is_postgresql(alias: str) -> bool:
    """Whether Rowlock can live there."""
    return bool(connections[alias].vendor == "postgresql")


class RequestConnections:
    """Django's connections around a piece of work as around a request: old or broken ones are closed, and the caches.

    Sync code uses the connections of its own thread. Async code gets a thread of its own for Django's async verbs, as
    a request gets one from ASGIHandler: in the one that all of them share otherwise, whoever ends first would close the
    connection under the others. `shared` keeps to that one, where the caller has a transaction open in it.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._own: _OwnThread | None = None

    def __enter__(self) -> None:
        _begin()

    def __exit__(self, *_: object) -> None:
        _end()

    async def __aenter__(self) -> None:
        if self._shared or _has_a_thread():
            await sync_to_async(_begin)()
        else:
            self._own = _OwnThread()
            self._own.open()

    async def __aexit__(self, *_: object) -> None:
        if self._own is None:
            await sync_to_async(_end)()
        else:
            await self._own.close()


class _OwnThread(ThreadSensitiveContext):
    """A thread for Django's async verbs, started by the first of them; none of its connections outlives it."""

    def open(self) -> None:
        """Be the one for what is called from here."""
        self._before = SyncToAsync.thread_sensitive_context.set(self)

    async def close(self) -> None:
        """Close its connections, and let it go."""
        executors = SyncToAsync.context_to_thread_executor
        try:
            if self in executors:
                await sync_to_async(_close_all)()
        finally:
            if (executor := executors.pop(self, None)) is not None:
                executor.shutdown(wait=False)  # a thread that is stuck must not hold the loop
            SyncToAsync.thread_sensitive_context.reset(self._before)


def _has_a_thread() -> bool:
    """Whether Django's async verbs have a thread here that is not everybody's: a waiting caller's, or a request's."""
    waiting = getattr(AsyncToSync.executors, "current", None)
    return waiting is not None or SyncToAsync.thread_sensitive_context.get(None) is not None


def before_databases_change(function: Callable[[], None]) -> None:
    """Call `function` before Django makes, copies or drops a database: only for that it connects to no database."""

    def connected(*, connection: Any, **_: object) -> None:  # noqa: ANN401  Django has no types
        if connection.alias == NO_DB_ALIAS:
            function()

    connection_created.connect(connected, weak=False)


def _begin() -> None:
    reset_queries()
    _close_old()


def _end() -> None:
    _close_old()
    close_caches()


def _close_all() -> None:
    connections.close_all()
    close_caches()


def _close_old() -> None:
    """But not in the middle of somebody's transaction: a test's, in which all of this happens."""
    for one in connections.all(initialized_only=True):
        if not one.in_atomic_block:
            one.close_if_unusable_or_obsolete()


def _libpq_options(theirs: Any) -> dict[str, Any]:  # noqa: ANN401  Django has no types
    """What Django would connect by, less what is for psycopg itself."""
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    options = {name: value for name, value in theirs.get_connection_params().items() if name in known}
    role = theirs.settings_dict["OPTIONS"].get("assume_role")
    if role:  # Django says SET ROLE when it has connected
        escaped = role.replace("\\", "\\\\").replace(" ", "\\ ")
        options["options"] = f"{options.get('options', '')} -c role={escaped}".strip()
    return options
