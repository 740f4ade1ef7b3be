"""What the demo's workers load; the command line tells them the database."""

from __future__ import annotations

from rowlock.app.app import Rowlock
from rowlock.demo.tasks import tasks

app = Rowlock()
app.include(tasks)
