"""Round trip: whether a value comes back from JSON as it was.

`unsupported` finds values that JSON text cannot carry, `difference` finds values that came back changed. Both return
the first `Fault`, or None. They compare models and dataclasses field by field and never by `==`: a class may define
that as it likes, and most definitions ignore types.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar, Final
from uuid import UUID

from pydantic import BaseModel

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 4300  # Python's own limit: an int of more cannot be read back
STORE_IT: Final = "store the data and pass its id"

_TOO_MANY_DIGITS: Final = 10**MAX_DIGITS
_PRINTABLE: Final = frozenset({str, int, float, bool, date, UUID, type(None)})
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a value cannot be carried, and the steps that lead to it."""

    reason: str
    steps: tuple[str, ...] = ()
    too_large: bool = False

    @property
    def path(self) -> str:
        """Where it is, as a JSON path: `$.order.lines[3]`."""
        return "$" + "".join(self.steps)

    def under(self, step: str) -> Fault:
        """The same fault, with its path from one level up."""
        return replace(self, steps=(step, *self.steps))


def unsupported(value: object, *, limit: int) -> Fault | None:
    """Find the first part that no JSON text can carry, before any text is made.

    Before, because a value that contains itself, or shares its parts 2⁶⁰ times, would never finish becoming text.
    """
    return _Walk(limit).visit(value)


def difference(sent: object, received: object) -> Fault | None:
    """Find the first place where the received value is not the sent one: same types and values, all the way down.

    Two exceptions: an int sent where a float is declared may come back as the equal float; and a member of an enum that
    is a str or an int itself may come back as its value, or its value as the member.
    """
    kind = type(sent)
    if kind is not type(received):
        as_float = kind is int and type(received) is float and sent == received
        is_same = as_float or _is_value_of(sent, received) or _is_value_of(received, sent)
        return None if is_same else Fault(_retyped(sent, received))
    if kind in _EQUAL_IS_SAME:
        return None if sent == received else Fault(_CHANGED)
    differ = _DIFFER.get(kind, _other_differs)
    return differ(sent, received)


def fields_of(value: object) -> dict[str, object] | None:
    """The fields of a pydantic model or a dataclass, private and undeclared ones too; None for anything else."""
    kind: type = type(value)
    names = _field_names(kind)
    if names is None:
        return None
    if not isinstance(value, BaseModel):
        return {name: getattr(value, name, _ABSENT) for name in names}
    held = {name: value.__dict__.get(name, _ABSENT) for name in names}
    if value.__pydantic_extra__ or value.__pydantic_private__:
        return held | (value.__pydantic_extra__ or {}) | (value.__pydantic_private__ or {})
    return held


def step_to(key: object) -> str:
    """The step of a path that leads to the entry of this key."""
    if isinstance(key, enum.Enum):
        return step_to(key.value)
    if isinstance(key, str) and key.isidentifier():
        return f".{key}"
    name = str(key) if type(key) in _PRINTABLE else type(key).__name__
    return f"[{json.dumps(name[:40])}]"


class _Walk:
    """One walk through a value: what is left of the size limit, and the containers around the current place."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit
        self._inside: list[int] = []

    def visit(self, value: object) -> Fault | None:
        return self._visits.get(type(value), _Walk._other)(self, value)

    def _other(self, value: object) -> Fault | None:
        if (inside := fields_of(value)) is not None:
            return self._within(value, inside)
        for kind in (enum.Enum, str, int, float, Decimal, bytes, dict, list, tuple, set, frozenset):
            if isinstance(value, kind):
                return self._visits[kind](self, value)
        return Fault("can be read only once; pass a list of its items") if isinstance(value, Iterator) else None

    def _text(self, value: str) -> Fault | None:
        if fault := self._spend(len(value)):
            return fault
        if "\x00" in value:
            return Fault("contains NUL, which PostgreSQL cannot store; remove it, or annotate it as bytes")
        if value.isascii():
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            return Fault("contains a lone surrogate, which is not text; decode it properly, or annotate it as bytes")
        return None

    def _bytes(self, value: bytes) -> Fault | None:
        return self._spend(len(value))

    def _integer(self, value: int) -> Fault | None:
        if -_TOO_MANY_DIGITS < value < _TOO_MANY_DIGITS:
            return None
        return Fault(f"is an int of over {MAX_DIGITS:,} digits; pass its hex() as a str")

    def _float(self, value: float) -> Fault | None:
        return None if math.isfinite(value) else Fault(_NOT_FINITE)

    def _decimal(self, value: Decimal) -> Fault | None:
        return None if value.is_finite() else Fault(_NOT_FINITE)

    def _entries(self, value: dict[object, object]) -> Fault | None:
        return self._within(value, value)

    def _within(self, container: object, entries: Mapping[Any, object]) -> Fault | None:
        if fault := self._spend(len(entries)) or self._enter(container):
            return fault
        for key, value in entries.items():
            if fault := self.visit(key):
                return replace(fault, reason=f"has a key that {fault.reason}")
            if fault := self.visit(value):
                return fault.under(step_to(key))
        self._inside.pop()
        return None

    def _items(self, container: Collection[object]) -> Fault | None:
        if fault := self._spend(len(container)) or self._enter(container):
            return fault
        for index, value in enumerate(container):
            if fault := self.visit(value):
                return fault.under(f"[{index}]")
        self._inside.pop()
        return None

    def _spend(self, least: int) -> Fault | None:
        """Count the least that it takes: a byte for each item and for each character."""
        self._left -= least
        if self._left >= 0:
            return None
        return Fault(f"takes more than {self._limit:,} bytes of JSON; {STORE_IT}", too_large=True)

    def _enter(self, container: object) -> Fault | None:
        self._inside.append(id(container))
        if len(self._inside) <= MAX_DEPTH + 1:  # the arguments object itself is not counted
            return None
        if len(set(self._inside)) < len(self._inside):
            return Fault("is part of a value that contains itself; pass ids instead of references")
        return Fault(f"is nested more than {MAX_DEPTH} levels deep; pass a flatter value")

    def _nothing(self, value: object) -> None:
        """Values of these types are always fine."""

    _visits: ClassVar[dict[type, Callable[[_Walk, Any], Fault | None]]] = {
        **dict.fromkeys((type(None), bool, enum.Enum, datetime, date, time, timedelta, UUID), _nothing),
        **dict.fromkeys((list, tuple, set, frozenset), _items),
        str: _text,
        bytes: _bytes,
        int: _integer,
        float: _float,
        Decimal: _decimal,
        dict: _entries,
    }


def _is_value_of(member: object, plain: object) -> bool:
    """Whether a plain str or int is the value of an enum's member that is one, too: to Python the two are equal.

    A framework's models hold the one or the other, as Django's do: the member until they are saved, then its value.
    """
    if not isinstance(member, enum.Enum) or not isinstance(member, str | int):
        return False
    return type(plain) in _PLAIN and type(member.value) is type(plain) and bool(member.value == plain)


def _entries_differ(sent: Mapping[Any, object], received: Mapping[Any, object]) -> Fault | None:
    # By lookup and not in order: pydantic returns a TypedDict in the order of its declaration.
    keys = {key: key for key in received}
    for key, value in sent.items():
        theirs = keys.get(key, _ABSENT)
        if theirs is not key and difference(key, theirs):
            return Fault(_lost_key(key))
        if fault := difference(value, received[key]):
            return fault.under(step_to(key))
    return None if len(sent) == len(received) else Fault(_CHANGED)


def _items_differ(sent: Sequence[object], received: Sequence[object]) -> Fault | None:
    for index, (ours, theirs) in enumerate(zip(sent, received, strict=False)):
        if fault := difference(ours, theirs):
            return fault.under(f"[{index}]")
    return None if len(sent) == len(received) else Fault(_CHANGED)


def _members_differ(sent: AbstractSet[object], received: AbstractSet[object]) -> Fault | None:
    members = {member: member for member in received}
    for member in sent:
        if difference(member, members.get(member, _ABSENT)):
            return Fault(f"has a member of type {_name(member)} that would not come back; {_ANNOTATE_BETTER}")
    return None if len(sent) == len(received) else Fault(_CHANGED)


def _float_differs(sent: float, received: float) -> Fault | None:
    same = sent == received and math.copysign(1.0, sent) == math.copysign(1.0, received)
    return None if same else Fault(_CHANGED)


def _decimal_differs(sent: Decimal, received: Decimal) -> Fault | None:
    return None if sent.as_tuple() == received.as_tuple() else Fault(_CHANGED)  # 1.10 is not 1.1


def _clock_differs(sent: datetime | time, received: datetime | time) -> Fault | None:
    """Same clock, same offset from UTC, and no zone whose other offsets JSON would lose.

    A zone with summer time is refused all year. Python calls it equal to the fixed offset that comes back, except in
    the hour that the clocks repeat: accepting by == would fail one night a year, and `+ timedelta(days=180)` would
    give another time in the handler. Zones that know their offset without a date (UTC by any name) have neither fault.
    """
    if sent.tzinfo is not None and sent.tzinfo.utcoffset(None) is None:
        return Fault("has a time zone whose rules JSON cannot carry; pass it in UTC, and the zone's name beside it")
    if sent.fold != received.fold:
        return Fault("has fold=1, which JSON cannot carry; pass it in UTC")
    if sent != received or sent.utcoffset() != received.utcoffset():
        return Fault("has an offset from UTC that JSON cannot carry; pass it in UTC")
    return None


def _other_differs(sent: object, received: object) -> Fault | None:
    """Two values of one type, which may be a subclass of one we know, or unknown."""
    if sent is received:  # an enum's member
        return None
    if isinstance(sent, tuple) and isinstance(received, tuple):
        return _items_differ(sent, received)
    if (inside := fields_of(sent)) is not None:
        return _entries_differ(inside, fields_of(received) or {})
    if isinstance(sent, Collection):  # its == may not look at the types of its items
        return Fault(f"is of type {_name(sent)}, which JSON cannot carry exactly; pass a list or a dict")
    try:
        same = bool(sent == received)
    except Exception:  # the == is the user's: whatever it raised, it did not say "equal"
        same = False
    return None if same else Fault(f"is of type {_name(sent)} and would not come back equal; {_ANNOTATE_BETTER}")


# Types whose values are compared by ==, once the types are the same.
_EQUAL_IS_SAME: Final = frozenset({type(None), bool, int, str, bytes, date, timedelta, UUID})
_PLAIN: Final = (str, int)
_DIFFER: Final[dict[type, Callable[[Any, Any], Fault | None]]] = {
    **dict.fromkeys((list, tuple), _items_differ),
    **dict.fromkeys((set, frozenset), _members_differ),
    **dict.fromkeys((datetime, time), _clock_differs),
    dict: _entries_differ,
    float: _float_differs,
    Decimal: _decimal_differs,
}


@lru_cache(maxsize=1024)
def _field_names(kind: type) -> tuple[str, ...] | None:
    if issubclass(kind, BaseModel):
        return tuple(kind.model_fields)
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


_ANNOTATE_BETTER: Final = "annotate its type more exactly"
_CHANGED: Final = f"would come back with another value; {_ANNOTATE_BETTER}"
_NOT_FINITE: Final = "is not a finite number; pass None or a str instead"
_GENERIC: Final = frozenset({list, tuple, set, frozenset, dict})


def _retyped(sent: object, received: object) -> str:
    had, gets = _name(sent), _name(received)
    if had == gets:
        had, gets = f"{type(sent).__module__}.{had}", f"{type(received).__module__}.{gets}"
    wanted = f"{had}[…]" if type(sent) in _GENERIC else had
    return f"is of type {had} and would come back as {gets}; annotate it as {wanted}, or pass {gets}"


def _lost_key(key: object) -> str:
    if isinstance(key, str):
        return f"would not come back with its key {json.dumps(key[:40])}; {_ANNOTATE_BETTER}"
    kind = _name(key)
    return f"has a key of type {kind} that would not come back as it is; annotate dict[{kind}, …], or use str keys"


def _name(value: object) -> str:
    return type(value).__name__
