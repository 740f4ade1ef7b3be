"""Rowlock in a Django project: `"rowlock.contrib.django"` among the INSTALLED_APPS, and a DjangoRowlock."""

from rowlock.contrib.django.app import DjangoRowlock

__all__ = ["DjangoRowlock"]
