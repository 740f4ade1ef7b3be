"""Columns: lists that several statements share, so that a column is added in one place.

A statement writes the name of a list in braces, as in `{copied}`; the loader of statements puts the list there.
"""

from __future__ import annotations

from typing import Final

COPIED: Final = (
    "id",
    "queue",
    "task",
    "priority",
    "claims",
    "attempts",
    "run_at",
    "created_at",
    "started_at",
    "worker",
    "args",
    "key",
    "tags",
    "progress",
    "version",
    "parent",
)
"""What a job takes along into history as it stands. SQL functions cannot use the list: a house test compares theirs."""

LISTS: Final = {"copied": ", ".join(COPIED)}
"""The lists by the names that statements write in braces."""
