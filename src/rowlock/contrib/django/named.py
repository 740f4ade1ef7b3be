"""The app of the project, by its name in the settings."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from rowlock.cli.load import AppNotFound, load_app
from rowlock.contrib.django.app import DjangoRowlock

MISSING = 'settings.ROWLOCK_APP is missing; name your app: ROWLOCK_APP = "shop.jobs:app"'


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
