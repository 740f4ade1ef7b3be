"""The project's Rowlock; a worker imports the tasks of every Django app named here."""

from rowlock.contrib.django import DjangoRowlock

app = DjangoRowlock(imports=["shop.tasks"])
