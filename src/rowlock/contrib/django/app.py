"""DjangoRowlock, the app of a Django project: what its teams hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, nullcontext
from datetime import timedelta
from functools import partial
from types import TracebackType
from weakref import WeakSet

import django
from django.apps import apps as installed
from django.utils.module_loading import autodiscover_modules

from rowlock.app.app import Rowlock
from rowlock.db import django_alias as databases
from rowlock.db.database import Database
from rowlock.model.spec import Handler, Keep
from rowlock.worker.around import Async, Plain, checked, enter


class DjangoRowlock(Rowlock):
    """An app on one of Django's databases: `app = DjangoRowlock()`.

    Its tasks are in the module `tasks` of each of the INSTALLED_APPS that has one, unless `imports` names the modules.
    `alias` is the database's name in settings.DATABASES. Jobs are enqueued on Django's own connection, and so belong to
    the `atomic` block around them; inside of one, all that reads or changes jobs does so there, too.
    Around each attempt old connections are closed, as around a request. `pooler`, `listen_url` and `deadline` are those
    of Rowlock.
    """

    def __init__(
        self,
        alias: str = "default",
        *,
        schema: str | None = None,
        imports: Sequence[str] | None = None,
        keep: Keep | None = None,
        lifespan: Callable[[Rowlock], Plain | Async] = nullcontext,
        pooler: bool | None = None,
        listen_url: str | None = None,
        deadline: timedelta | None = None,
    ) -> None:
        super().__init__(imports=imports or (), keep=keep, lifespan=lifespan)
        self.lifespan = partial(_Lifespan, self.lifespan)
        self._discovers = imports is None
        self.alias = alias
        self._set_database(
            Database(
                partial(databases.address, alias),
                schema,
                pooler=pooler,
                listen_url=listen_url,
                deadline=deadline,
                connection=partial(databases.connection, alias),
                framework=databases.DjangoDatabase(alias),
            )
        )
        self.around(lambda _job: databases.RequestConnections(shared=self.database.within.is_lent()))
        _made.add(self)

    def load(self) -> dict[str, Handler]:
        """Import the tasks; Django is set up first, for `rowlock worker` knows nothing of it."""
        if not installed.ready:
            django.setup()
        if self._discovers:
            autodiscover_modules("tasks")
        return super().load()


class _Lifespan:
    """The project's lifespan: its beginning and its end each have a request's care, and a thread for the ORM.

    Not what lies between them: all attempts would share that thread, as they copy the context they are started in.
    """

    def __init__(self, make: Callable[[], Plain | Async]) -> None:
        self._make = make
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> None:
        async with databases.RequestConnections():
            await enter(self._stack, checked(self._make(), "lifespan"))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        async with databases.RequestConnections():
            return await self._stack.__aexit__(kind, error, trace)


_made: WeakSet[DjangoRowlock] = WeakSet()


def let_go() -> None:
    """Tests make, copy and drop databases, for which nobody may be connected; and afterwards they have other names."""
    for app in list(_made):
        app.waiting_room.close()
        app.database.let_go()


databases.before_databases_change(let_go)
