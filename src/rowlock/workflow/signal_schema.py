"""Signal schema: the JSON Schema of a signal's payload, and how the payload is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol

from pydantic import TypeAdapter

from rowlock.errors import WorkflowError
from rowlock.model.payload.arguments import Result


class PayloadReader(Protocol):
    """Makes a value of a payload's JSON."""

    def decode(self, text: str | None) -> object:
        """The value; an error if it does not fit."""


class SignalSchema(NamedTuple):
    """The JSON Schema of a payload, if one was given, and its reader."""

    schema: str | None
    payload: PayloadReader


class _Typed:
    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    def decode(self, text: str | None) -> object:
        return self._adapter.validate_json("null" if text is None else text)


_FREE = Result.untyped("the payload of a signal")


def schema_of(schema: object) -> SignalSchema:
    """A type, or a JSON Schema as a mapping, or nothing."""
    if schema is None:
        return SignalSchema(None, _FREE)
    if isinstance(schema, Mapping):
        try:
            return SignalSchema(json.dumps(schema, allow_nan=False), _FREE)
        except (TypeError, ValueError) as error:
            raise WorkflowError(f"schema= cannot be JSON ({error}); give a JSON Schema, or a type") from None
    try:
        return _typed(schema)
    except TypeError:  # not hashable, and so no type
        raise WorkflowError(f"schema={schema!r} must be a type, or a JSON Schema as a dict") from None


@cache
def _typed(kind: Any) -> SignalSchema:  # noqa: ANN401  any type that pydantic knows
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        return SignalSchema(json.dumps(adapter.json_schema()), _Typed(adapter))
    except Exception as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise WorkflowError(f"schema={kind!r} cannot be a form: {reason}; give a type that pydantic knows") from error
