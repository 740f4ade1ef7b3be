"""Who may see the dashboard: the staff of Django's own login."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from rowlock.dashboard import Visitor
from rowlock.db.django_alias import RequestConnections


async def staff(request: Any) -> Visitor | None:  # noqa: ANN401  Starlette's, which comes with an extra
    """Whose session a request is of: superusers are admins, staff are operators, and nobody else comes in.

    `app.dashboard(auth=staff)`; write a function of your own like this one for other roles.
    """
    async with RequestConnections():
        user = await sync_to_async(_user)(request.cookies.get(settings.SESSION_COOKIE_NAME))
    if not user.is_staff:
        return None
    return Visitor(user.get_username(), "admin" if user.is_superuser else "operator")


def _user(key: str | None) -> Any:  # noqa: ANN401  Django has no types
    """The user of a session; one who is not active any more is nobody."""
    asked = HttpRequest()
    asked.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return get_user(asked)
