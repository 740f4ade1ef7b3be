"""The project's Rowlock; a worker finds the tasks in the module `tasks` of every Django app."""

from rowlock.contrib.django import DjangoRowlock

app = DjangoRowlock()
