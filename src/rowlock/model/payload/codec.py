"""Codec: one annotation, from a value to JSON text and back, proven to be equal."""

from __future__ import annotations

import types
import typing
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NewType, Optional, Union

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from rowlock.errors import InvalidArguments, PayloadTooLarge, TaskError
from rowlock.model.payload.round_trip import STORE_IT, Fault, difference, step_to, unsupported

# bytes as base64, because as UTF-8 most of them could not travel.
CONFIG: Final = ConfigDict(extra="forbid", strict=True, ser_json_bytes="base64", val_json_bytes="base64")
NUL: Final = b"\\u0000"

_SCALARS: Final = frozenset({type(None), bool, int, float, str})


def scalars_of(annotation: object) -> frozenset[type] | None:
    """The types that an annotation allows, if only None, bool, int, float and str; None if it takes, or is, others.

    A value whose exact type is among them is the same after JSON, if it is finite, of few digits and clean text.
    """
    if annotation is Any or annotation is object:
        return _SCALARS
    if annotation is None:
        return frozenset({type(None)})
    if isinstance(annotation, NewType):
        return scalars_of(annotation.__supertype__)
    if typing.get_origin(annotation) in (Union, types.UnionType):
        members = [scalars_of(member) for member in typing.get_args(annotation)]
        return frozenset().union(*(m for m in members if m)) if all(members) else None
    return frozenset({annotation}) if isinstance(annotation, type) and annotation in _SCALARS else None


class Codec:
    """The codec of one annotation. `what` is the name of the value in messages: `the arguments of send_welcome`."""

    def __init__(self, annotation: object, *, what: str, limit: int) -> None:
        self._what = what
        self._limit = limit
        try:
            # Optional, because pydantic ignores the config of a bare TypedDict when it serialises, and refuses one
            # for a bare model or dataclass.
            nullable: Any = Optional[annotation]  # noqa: UP045 - strings and special forms know no |
            self._adapter: TypeAdapter[Any] = TypeAdapter(nullable, config=CONFIG)
        except Exception as fault:
            reason = str(fault).partition("\n")[0].rstrip(".")
            raise TaskError(
                f"{what} cannot be JSON: {reason}; annotate types that pydantic can validate, "
                "and pass the key of a row of your database (user.pk), not the row"
            ) from fault

    def encode(self, value: object) -> str:
        """The JSON of `value`, proven to come back the same; InvalidArguments if it would not."""
        if fault := unsupported(value, limit=self._limit):
            raise self._refusal(fault)
        try:
            raw = self._dump(value)
        except Exception as error:  # serialisers are the user's: whatever they raise, this cannot travel
            raise self._refusal(self._unwritable(value, error)) from None
        if len(raw) > self._limit:
            raise too_large(self._what, size=len(raw), limit=self._limit)
        if fault := self._damage(value, raw):
            raise self._refusal(fault)
        return raw.decode()

    def decode(self, text: str) -> object:
        """The value of a text, or InvalidArguments if it no longer fits."""
        value, fault = self._loaded(text)
        if fault is None:
            return value
        raise InvalidArguments(
            f"{self._what} no longer fit: {fault.path} {fault.reason}; "
            f"accept the old form too (a default, a union) until its jobs are done",
            path=fault.path,
        )

    def _dump(self, value: object) -> bytes:
        # By name: an alias for reading and another for writing would not meet. round_trip: no computed fields.
        # No warnings about values of the wrong type: they are found, with their place, when the text is read.
        return self._adapter.dump_json(value, by_alias=False, round_trip=True, warnings=False)

    def _loaded(self, text: str | bytes) -> tuple[object, Fault | None]:
        try:
            return self._adapter.validate_json(text, strict=True, by_alias=False, by_name=True), None
        except ValidationError as error:
            return None, _first_complaint(error, _parsed(text))
        except Exception as error:  # validators are the user's, too
            return None, Fault(f"cannot be read: a validator raised {type(error).__name__}; let it raise ValueError")

    def _damage(self, value: object, raw: bytes) -> Fault | None:
        """The difference that the round trip makes to a value, if it makes one."""
        # Serialisers of the user's own can write a NUL where there was none.
        if NUL in raw and (fault := unsupported(from_json(raw), limit=self._limit)):
            return fault
        received, fault = self._loaded(raw)
        return fault or difference(value, received)

    def _unwritable(self, value: object, error: Exception) -> Fault:
        """Why a value cannot become text: the part that differs when values of unknown types are written as null."""
        hint = "pass plain values, such as the id of something stored, or annotate a type that pydantic can serialise"
        if "utf-8" in str(error):
            hint = "set ser_json_bytes and val_json_bytes to 'base64' in its model's config"
        fault = Fault(f"cannot become JSON ({type(error).__name__}); {hint}")
        with suppress(Exception):
            raw = self._adapter.dump_json(value, by_alias=False, round_trip=True, warnings=False, fallback=_nothing)
            found = self._damage(value, raw)
            return replace(fault, steps=found.steps) if found else fault
        for key, part in value.items() if isinstance(value, dict) else ():
            try:
                self._dump({key: part})
            except Exception:
                return fault.under(step_to(key))
        return fault

    def _refusal(self, fault: Fault) -> InvalidArguments:
        if fault.too_large:
            return PayloadTooLarge(f"{self._what}: {fault.path} {fault.reason}", path=fault.path)
        return InvalidArguments(f"{self._what}: {fault.path} {fault.reason}", path=fault.path)


def too_large(what: str, *, size: int, limit: int) -> PayloadTooLarge:
    """The refusal of a text that is over the limit."""
    return PayloadTooLarge(f"{what}: {size:,} bytes of JSON are over the limit of {limit:,}; {STORE_IT}")


def _nothing(_: object) -> None:
    return None


def _parsed(text: str | bytes) -> object:
    try:
        return from_json(text)
    except ValueError:
        return None


def _first_complaint(error: ValidationError, value: object) -> Fault:
    """Pydantic's first complaint, without the value itself: arguments may be secrets, and errors are logged."""
    complaints = error.errors(include_url=False, include_context=False)
    first, steps = complaints[0], _steps_to(complaints[0], value)
    # A union complains once per member, of the same place.
    reasons = dict.fromkeys(_sentence(c) for c in complaints if _steps_to(c, value) == steps)
    listed = ", or ".join(list(reasons)[:3])
    return Fault(f"{listed}, not {type(first['input']).__name__}" if first["type"].endswith("_type") else listed, steps)


def _sentence(complaint: ErrorDetails) -> str:
    match complaint["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is unknown"
        case _:
            message = complaint["msg"]
            return message.removeprefix("Input ") if message.startswith("Input ") else f"does not fit: {message}"


def _steps_to(complaint: ErrorDetails, value: object) -> tuple[str, ...]:
    """The place in pydantic's complaint, without names of union members and validators, and without `[key]`."""
    steps: list[str] = []
    for item in complaint["loc"]:
        if isinstance(value, dict) and item in value:
            value = value[item]
            steps.append(step_to(item))
        elif isinstance(value, list) and isinstance(item, int) and item < len(value):
            value = value[item]
            steps.append(f"[{item}]")
    if complaint["type"] == "missing":
        steps.append(step_to(complaint["loc"][-1]))
    return tuple(steps)
