"""Excerpts: the beginnings of values that are too long for a page.

Users choose how long arguments are, and redacting a megabyte of them takes a second. So a page has a budget for values,
cuts each before it is redacted, and links to the API for the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from rowlock.model.redact import redact

MOST_SHOWN: Final = 20_000
"""Characters of one value on a page."""
_MOST_IN_ALL: Final = 200_000
_LEAST_SHOWN: Final = 400  # of each value, however many there are
# What is cut is redacted with so much after it: a password at the end is known by the address that goes on behind it.
_MARGIN: Final = 4_096


class Excerpt(str):
    """The beginning of a JSON value, as text, without its secrets."""

    __slots__ = ()


class ExcerptBudget:
    """The characters of values that a page can still show."""

    def __init__(self) -> None:
        self._left = _MOST_IN_ALL

    def fit(self, value: Any) -> Any:  # noqa: ANN401  any JSON value
        """The value without its secrets, if it fits; else its beginning, an Excerpt."""
        most = max(_LEAST_SHOWN, min(MOST_SHOWN, self._left))
        cut = _Cut(most + _MARGIN)
        shown = redact(cut.beginning(value))
        self._left -= min(most, most + _MARGIN - cut.left)
        if cut.left > _MARGIN:
            return shown
        return Excerpt(json.dumps(shown, ensure_ascii=False, indent=2, default=str)[:most])


class _Cut:
    """Takes the beginning of a value, for as many characters as are left."""

    def __init__(self, left: int) -> None:
        self.left = left

    def beginning(self, value: Any) -> Any:  # noqa: ANN401  any JSON value
        match value:
            case str():
                return self._text(value)
            case Mapping():
                made: dict[Any, Any] = {}
                for name, one in value.items():
                    if self.left <= 0:
                        break
                    key = self._text(name) if isinstance(name, str) else name
                    made[key] = self.beginning(one)
                return made
            case list() | tuple():
                items = []
                for one in value:
                    if self.left <= 0:
                        break
                    items.append(self.beginning(one))
                return items
            case _:
                self.left -= 8  # a number, or a word
                return value

    def _text(self, text: str) -> str:
        taken = text[: max(self.left, 0)]
        self.left -= len(text) + 4
        return taken
