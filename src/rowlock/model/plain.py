"""Plain values: what JSON can hold, made of ids, instants, durations and dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID


def plain(value: object) -> Any:  # noqa: ANN401  whatever JSON can hold
    """A value as JSON knows it: ids and instants are strings, durations are seconds, dataclasses are objects."""
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case tuple() | list():
            return [plain(one) for one in value]
        case Mapping():
            return {name: plain(one) for name, one in value.items()}
        case _:
            return plain_fields(value) if is_dataclass(value) else value


def plain_fields(value: Any) -> dict[str, Any]:  # noqa: ANN401  any dataclass
    """The fields of a dataclass as JSON knows them, in their order."""
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


class Plain:
    """A dataclass whose fields JSON can hold."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values: ids and times are strings, durations are seconds."""
        return plain_fields(self)
