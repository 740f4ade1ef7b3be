"""The dashboard behind Django's own login: a staff member's session, and nobody else's, opens it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

PROGRAM = """
import sys

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": dict(ENGINE="django.db.backends.postgresql", NAME=sys.argv[1], USER=sys.argv[2], HOST=sys.argv[3]),
    },
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    SECRET_KEY="for this test",
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from rowlock.contrib.django import DjangoRowlock
from rowlock.contrib.django.visitors import staff
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

call_command("migrate", verbosity=0)
app = DjangoRowlock()
site = Starlette(routes=[Mount("/rowlock", app.dashboard(auth=staff, hosts=["testserver"]))])


def asked(user):
    cookies = {}
    if user is not None:
        browser = Client()
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        cookies = {settings.SESSION_COOKIE_NAME: browser.cookies[settings.SESSION_COOKIE_NAME].value}
    with TestClient(site, cookies=cookies) as client:
        return client.get("/rowlock/jobs").status_code


made = User.objects.create_user
people = [None, made("ann"), made("ben", is_staff=True), made("cid", is_staff=True, is_superuser=True)]
print(*map(asked, people))
gone = people[2]
gone.is_active = False
gone.save()
print(asked(gone))
"""


def test_staff_come_in_and_others_do_not(url: str, tmp_path: Path) -> None:
    (tmp_path / "site_of_ours.py").write_text(PROGRAM)
    place = conninfo_to_dict(url)
    names = [str(place[part]) for part in ("dbname", "user", "host")]

    done = subprocess.run(
        [sys.executable, "site_of_ours.py", *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["401", "401", "200", "200", "401"]
