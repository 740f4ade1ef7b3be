"""Django app: the project's Rowlock, our schema with its `migrate`, and its system checks."""

from __future__ import annotations

from typing import Any, TextIO

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate

from rowlock.cli.shared.import_app import AppNotFound, load_app
from rowlock.contrib.django.app import DjangoRowlock
from rowlock.db import django_alias as databases

MISSING = 'settings.ROWLOCK_APP is missing; name your app: ROWLOCK_APP = "shop.jobs:app"'


class RowlockConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """Rowlock among the INSTALLED_APPS."""

    name = "rowlock.contrib.django"
    label = "rowlock"
    verbose_name = "Rowlock"

    def ready(self) -> None:
        """Connect to `migrate` and to the system checks."""
        post_migrate.connect(migrate, sender=self)
        checks.register(check_app)


def migrate(*, using: str, verbosity: int, stdout: TextIO | None = None, **_: object) -> None:
    """Bring our schema up to date where Django has just done so with its own; test databases are no exception."""
    if not databases.is_postgresql(using):  # tests may run on another database, and touch no job
        return
    app = named_app()
    if app.alias != using:
        return
    for name in app.migrate():
        if verbosity and stdout is not None:
            stdout.write(f"  Applied {name} to the schema {app.database.schema}")


def check_app(**_: object) -> list[Any]:
    """Check the app that the settings name, and that its jobs can join the transactions of its alias."""
    try:
        app = named_app()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="rowlock.E001")]
    if (fault := databases.missing(app.alias)) is not None:
        return [checks.Error(fault, id="rowlock.E002")]
    return [
        checks.Warning(
            f"settings.DATABASES[{app.alias!r}], where jobs are, and [{other!r}] {'are' if is_sure else 'may be'} one "
            f"database and two connections: a job that is enqueued inside atomic() on {other!r} is committed whatever "
            "becomes of that block",
            hint=f'Use one alias: DjangoRowlock("{other}"). Behind PgBouncer, listen_url= is the way around it.'
            + ("" if is_sure else " If they are different servers, silence rowlock.W002."),
            id="rowlock.W001" if is_sure else "rowlock.W002",
        )
        for other, is_sure in databases.same_database(app.alias).items()
    ]


def named_app() -> DjangoRowlock:
    """The app that settings.ROWLOCK_APP names."""
    target = getattr(settings, "ROWLOCK_APP", None)
    if not target:
        raise ImproperlyConfigured(MISSING)
    try:
        app = load_app(target)
    except AppNotFound as error:
        raise ImproperlyConfigured(f"settings.ROWLOCK_APP is {target!r}: {error}") from error
    if not isinstance(app, DjangoRowlock):
        raise ImproperlyConfigured(
            f"settings.ROWLOCK_APP is {target!r}, a plain Rowlock, which knows nothing of settings.DATABASES; "
            "make it a rowlock.contrib.django.DjangoRowlock"
        )
    return app
