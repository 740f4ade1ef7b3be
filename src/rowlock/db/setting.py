"""Setting: a value from the caller, else the environment, else a default."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, Generic, TypeVar

from rowlock.errors import InvalidOption
from rowlock.model.names import shown

T = TypeVar("T")

LONGEST: Final = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class SettingValue(Generic[T]):
    """A value in force; `source` is where it was said, `name=` or `$VARIABLE`, or "default"."""

    source: str
    value: T


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One setting: how a text becomes its value, and what a value must be. Both refuse without saying whose it is."""

    name: str
    variable: str
    default: T
    parse: Callable[[str], T]
    check: Callable[[Any], T]

    def read(self, text: str) -> T:
        """The value of a text."""
        return self.check(self.parse(text))

    def chosen(self, given: T | None) -> T:
        """What was given, else what the environment says, else the default."""
        return self.find(given).value

    def find(self, given: T | None) -> SettingValue[T]:
        """The same, with where it was said."""
        if given is not None:
            return self._read_from(f"{self.name}=", partial(self.check, given))
        text = os.environ.get(self.variable)
        return (
            self._read_from(f"${self.variable}", partial(self.read, text))
            if text
            else SettingValue("default", self.default)
        )

    @staticmethod
    def _read_from(source: str, value: Callable[[], T]) -> SettingValue[T]:
        try:
            return SettingValue(source, value())
        except InvalidOption as fault:
            raise InvalidOption(f"{source.removesuffix('=')}={fault}") from None


def parse_seconds(text: str) -> timedelta:
    """A number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        raise InvalidOption(f"{shown(text)} is not a number; give seconds, such as 30 or 0.5") from None
    if not math.isfinite(seconds) or abs(seconds) > LONGEST.total_seconds():
        raise InvalidOption(f"{shown(text)} is out of range; give seconds, a year of them at most")
    return timedelta(seconds=seconds)


def check_span(span: timedelta, *, least: timedelta) -> timedelta:
    """A length of time that is not too short, and no longer than a year."""
    if not isinstance(span, timedelta):
        raise InvalidOption(f"{shown(span)} must be a timedelta; write timedelta(seconds=…)")
    if not least <= span <= LONGEST:
        raise InvalidOption(f"{span} is out of range; give {least.total_seconds():g} seconds to a year")
    return span
