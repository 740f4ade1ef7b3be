"""Whether this code is inside of a step, and by which key it calls the outside."""

from __future__ import annotations

from contextvars import ContextVar, Token

_key: ContextVar[str | None] = ContextVar("rowlock_step", default=None)


class inside:  # noqa: N801  it reads as a block
    """Inside of the step with this key."""

    __slots__ = ("_before", "_name")

    def __init__(self, key: str) -> None:
        self._name = key

    def __enter__(self) -> None:
        self._before: Token[str | None] = _key.set(self._name)

    def __exit__(self, *_error: object) -> None:
        _key.reset(self._before)


def current_step() -> str | None:
    """The key of the step that is running here; None outside of steps."""
    return _key.get()
