"""Errors that do what they can not to be described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def raised(error: BaseException) -> BaseException:
    """The error with a traceback of its own."""
    try:
        raise error
    except BaseException as caught:
        return caught


class RaisesInStr(Exception):
    def __str__(self) -> str:
        raise RuntimeError("in __str__")


class ExitsInStr(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class NoText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - that is the fault


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


class OddText(str):
    """A text whose every method misleads."""

    __slots__ = ()

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: object) -> str:
        raise RuntimeError("in __getitem__")

    def replace(self, *_: object) -> str:
        raise RuntimeError("in replace")

    def encode(self, *_: object) -> bytes:
        raise RuntimeError("in encode")


class OddlyTold(Exception):
    def __str__(self) -> str:
        return OddText("odd\0" * 5000)


class Hidden(Exception):
    """Every attribute that a description needs is behind a property that raises."""

    @property
    def __cause__(self) -> Any:  # type: ignore[override]  # noqa: ANN401
        raise RuntimeError

    @property
    def __context__(self) -> Any:  # type: ignore[override]  # noqa: ANN401
        raise RuntimeError

    @property
    def __traceback__(self) -> Any:  # type: ignore[override]  # noqa: ANN401
        raise RuntimeError

    @property
    def __notes__(self) -> Any:  # type: ignore[override]  # noqa: ANN401
        raise RuntimeError

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401
        raise RuntimeError(name)


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:  # noqa: ANN401
        if name in {"__name__", "__qualname__", "__module__"}:
            raise RuntimeError(name)
        return super().__getattribute__(name)


class OfNamelessType(Exception, metaclass=Nameless):
    pass


def chain(length: int) -> BaseException:
    first = error = ValueError(0)
    for number in range(1, length):
        error.__cause__ = ValueError(number)
        error = error.__cause__
    return first


def cycle() -> BaseException:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__context__ = second, first
    return first


def nested_groups(depth: int) -> BaseException:
    error: Exception = ValueError("innermost")
    for number in range(depth):
        error = ExceptionGroup(f"group {number}", [error] * 20)
    return error


def recursion() -> BaseException:
    def down(n: int) -> int:
        return up(n + 1)

    def up(n: int) -> int:
        return down(n + 1)

    try:
        down(0)
    except RecursionError as error:
        return error
    raise AssertionError


def with_notes(notes: object) -> BaseException:
    error = ValueError("noted")
    error.__dict__["__notes__"] = notes
    return error


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "raises in str": RaisesInStr,
    "exits in str": ExitsInStr,
    "returns no text": NoText,
    "never ends its text": Endless,
    "returns an odd text": OddlyTold,
    "hides its attributes": Hidden,
    "is of a nameless type": OfNamelessType,
    "is of a type with a long name": type("X" * 5000, (Exception,), {"__module__": 5}),
    "has a cycle of causes": cycle,
    "has itself as context": lambda: raised(chain(2)),
    "has 10,000 causes": lambda: chain(10_000),
    "is a group": lambda: BaseExceptionGroup("two", [ValueError(1), raised(KeyError(2))]),
    "is a deep and wide group": lambda: nested_groups(50),
    "is of deep recursion": recursion,
    "says 20 MB": lambda: ValueError("\0ö" * 10_000_000),
    "has a huge repr": lambda: ValueError(["x" * 100] * 10_000),
    "has many notes": lambda: with_notes(["note\0" * 1000] * 1000),
    "has odd notes": lambda: with_notes([OddText("odd"), 5, None]),
    "has notes that are none": lambda: with_notes(5),
    "ends the process": lambda: SystemExit(OddText("odd")),
    "is interrupted": KeyboardInterrupt,
    "is out of memory": MemoryError,
}
