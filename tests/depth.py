"""Which tests are deep: they take long, and find what no quick test can. tests/README.md says how that is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

deep = pytest.mark.deep


def deep_unless(is_quick: Callable[[T], bool], values: Iterable[T]) -> list[Any]:
    """Parameters of a test, of which those that are not quick are deep."""
    return [value if is_quick(value) else pytest.param(value, marks=deep) for value in values]
