"""What Django knows of us: our tables are brought up to date by its own `migrate`."""

from __future__ import annotations

from typing import TextIO

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate

from rowlock.contrib.django.checks import check_app
from rowlock.contrib.django.named import named_app
from rowlock.db.django_alias import is_postgresql


class RowlockConfig(AppConfig):  # type: ignore[misc]  # Django has no types
    """Rowlock among the INSTALLED_APPS."""

    name = "rowlock.contrib.django"
    label = "rowlock"
    verbose_name = "Rowlock"

    def ready(self) -> None:
        """Ask to be told of `migrate`, and to be checked."""
        post_migrate.connect(migrate, sender=self)
        checks.register(check_app)


def migrate(*, using: str, verbosity: int, stdout: TextIO | None = None, **_: object) -> None:
    """Bring our schema up to date where Django has just done so with its own; test databases are no exception."""
    if not is_postgresql(using):  # tests may run on another database, and touch no job
        return
    app = named_app()
    if app.alias != using:
        return
    for name in app.migrate():
        if verbosity and stdout is not None:
            stdout.write(f"  Applied {name} to the schema {app.database.schema}")
