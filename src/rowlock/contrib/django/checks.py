"""What `manage.py check` says of us, before anything runs."""

from __future__ import annotations

from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from rowlock.contrib.django.named import named_app
from rowlock.db import django_alias as databases


def check_app(**_: object) -> list[Any]:
    """The app that the settings name, and that its alias is the one whose transactions its jobs can join."""
    try:
        app = named_app()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="rowlock.E001")]
    if (fault := databases.missing(app.alias)) is not None:
        return [checks.Error(fault, id="rowlock.E002")]
    return [
        checks.Warning(
            f"settings.DATABASES[{app.alias!r}], where jobs are, and [{other!r}] are one database and two connections: "
            f"a job that is enqueued inside atomic() on {other!r} is committed whatever becomes of that block",
            hint=f'Use one alias: DjangoRowlock("{other}"). Behind PgBouncer, listen_url= is the way around it.',
            id="rowlock.W001",
        )
        for other in databases.same_database(app.alias)
    ]
