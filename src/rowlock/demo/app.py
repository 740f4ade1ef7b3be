"""App: what the demo's workers load; the command line names the database."""

from __future__ import annotations

from rowlock.app.app import Rowlock
from rowlock.demo.tasks import tasks

app = Rowlock()
app.include(tasks)
