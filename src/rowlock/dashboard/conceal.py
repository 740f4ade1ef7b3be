"""What is shown, without what must not be seen: secrets by nobody, arguments and results not by viewers."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def conceal(shown: T, *, show_arguments: bool) -> T:
    """The same values, made again where something must not be seen."""
    return shown
