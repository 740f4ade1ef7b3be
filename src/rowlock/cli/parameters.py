"""Values that are typed on the command line, turned into what the library takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import click

_LONGEST = timedelta(days=365)


def queues(_ctx: click.Context, _parameter: click.Parameter, value: str) -> list[str] | dict[str, float]:
    """`mail,default` is strict: a list. `mail=3,default=1` has weights: a dict."""
    pairs = [part.strip().partition("=") for part in value.split(",")]
    names = [name for name, _, _ in pairs]
    if not all(names):
        raise click.BadParameter(f"{value!r} has an empty name; write mail,default or mail=3,default=1")
    if len(set(names)) < len(names):
        raise click.BadParameter(f"{value!r} names a queue twice")
    if not any(equals for _, equals, _ in pairs):
        return names
    try:
        return {name: float(weight) for name, _, weight in pairs}
    except ValueError:
        raise click.BadParameter(f"{value!r}: give every queue a weight, or none; write mail=3,default=1") from None


def seconds(*, least: float = 0.0) -> Callable[[click.Context, click.Parameter, float], timedelta]:
    """A time span, typed in seconds."""

    def span(_ctx: click.Context, _parameter: click.Parameter, value: float) -> timedelta:
        if not math.isfinite(value) or not least <= value <= _LONGEST.total_seconds():
            raise click.BadParameter(f"{value} is out of range; give {least:g} seconds to a year")
        return timedelta(seconds=value)

    return span
