"""Watching: a screen that refreshes every second, until Ctrl-C."""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Final, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

_EVERY: Final = 1.0
_OTHER_SCREEN, _BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # without the cursor, and with it
_HOME, _REST_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def watch_option(command: Command) -> Command:
    """Give a command `--watch`."""
    return click.option("--watch", is_flag=True, help="Refresh every second, until Ctrl-C.")(command)


def watched(show: Callable[[], None]) -> None:
    """Show it until Ctrl-C: on a terminal each time in the place of the last, else one after the other."""
    try:
        if sys.stdout.isatty():
            _redrawn(show)
        else:
            _repeated(show)
    except KeyboardInterrupt:
        pass  # the way to end it


def _repeated(show: Callable[[], None]) -> None:
    while True:
        show()
        click.echo()
        time.sleep(_EVERY)


def _redrawn(show: Callable[[], None]) -> None:
    sys.stdout.write(_OTHER_SCREEN)
    try:
        while True:
            drawn = _Frame()
            with redirect_stdout(drawn):
                show()
            sys.stdout.write(_in_place(drawn.getvalue().splitlines(), shutil.get_terminal_size().lines))
            sys.stdout.flush()
            time.sleep(_EVERY)
    finally:
        sys.stdout.write(_BACK)
        sys.stdout.flush()


def _in_place(lines: list[str], height: int) -> str:
    """These lines over what is on the screen; those that have no room are counted."""
    if len(lines) >= height:
        lines = [*lines[: height - 2], f"… and {len(lines) - height + 2:,} more lines: make the window higher"]
    return _HOME + "".join(f"{line}{_REST_OF_LINE}\r\n" for line in lines) + _BELOW


class _Frame(io.StringIO):
    """What is drawn for a terminal, before it is written there at once."""

    def isatty(self) -> bool:
        return True
