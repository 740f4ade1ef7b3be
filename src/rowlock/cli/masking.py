"""Records as a terminal may show them: without the secrets in arguments, results and messages, as on the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from rowlock.app.masking import mask

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., object])


def reveal_option(command: Command) -> Command:
    """Give a command `--reveal`."""
    return click.option("--reveal", is_flag=True, help="Show secrets, too, in place of ***.")(command)


def masked(value: T, *, reveal: bool = False) -> T:
    """The same record, or several, with `***` for each secret; with `reveal` as it is."""
    return value if reveal else mask(value, show_arguments=True)
