"""DjangoRowlock, the app of a Django project: what its teams hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from weakref import WeakSet

import django
from django.apps import apps as installed

from rowlock.app import Rowlock
from rowlock.db import alias as databases
from rowlock.model.handler import Handler
from rowlock.model.spec import Keep
from rowlock.worker.around import Async, Plain


class DjangoRowlock(Rowlock):
    """An app on one of Django's databases: `app = DjangoRowlock(imports=["shop.tasks"])`.

    `alias` is the database's name in settings.DATABASES. Jobs are enqueued on Django's own connection, and so belong to
    the `atomic` block around them. Around each attempt old connections are closed, as around a request.
    """

    def __init__(
        self,
        alias: str = "default",
        *,
        schema: str | None = None,
        imports: Sequence[str] = (),
        keep: Keep | None = None,
        lifespan: Callable[[Rowlock], Plain | Async] = nullcontext,
    ) -> None:
        super().__init__(
            schema=schema,
            imports=imports,
            keep=keep,
            lifespan=lifespan,
            connection=partial(databases.connection, alias),
        )
        self.alias = alias
        self.database.move(find_address=partial(databases.address, alias))
        self.around(lambda _job: databases.AsForRequest(shared=self.database.within.is_lent()))
        _made.add(self)

    def load(self) -> dict[str, Handler]:
        """Import what `imports` names; Django is set up first, for `rowlock worker` knows nothing of it."""
        if not installed.ready:
            django.setup()
        return super().load()


_made: WeakSet[DjangoRowlock] = WeakSet()


def let_go() -> None:
    """Tests make, copy and drop databases, for which nobody may be connected; and afterwards they have other names."""
    for app in list(_made):
        app.waiting_room.close()
        app.database.let_go()


databases.before_one_comes_or_goes(let_go)
