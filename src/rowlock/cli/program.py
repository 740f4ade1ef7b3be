"""`rowlock`: the group of all commands, and how their errors end."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.options import is_debugging
from rowlock.cli.shared.output import EXIT_CODES_OF_CHANGES, INTERRUPTED, NOTHING_MATCHED, OURSELVES
from rowlock.errors import JobNotFound, NotConfigured, RowlockError, ScheduleNotFound

_NAMES: Final = (
    *("bench", "completion", "config", "dashboard", "demo", "doctor", "explain", "jobs", "migrate"),
    *("queues", "schedules", "stats", "tasks", "worker", "workers", "workflows"),
)


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each imported when it is asked for: to complete or run one takes no other."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in _NAMES:
            raise KeyError(name)
        command: click.Command = getattr(import_module(f"rowlock.cli.{name}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


class _NotThere(click.ClickException):
    exit_code = NOTHING_MATCHED


class Program(click.Group):
    """A group of commands; what they raise on purpose becomes one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except RowlockError as error:
            if is_debugging(ctx):
                raise
            refused = _NotThere if isinstance(error, JobNotFound | ScheduleNotFound) else click.ClickException
            raise refused(text.line(_sentence(error))) from error
        except (KeyboardInterrupt, click.Abort):  # Abort: Ctrl-C, or the end of the input, at a question
            raise click.exceptions.Exit(INTERRUPTED) from None


def _sentence(error: RowlockError) -> str:
    if isinstance(error, NotConfigured):
        return f"{error} (on the command line: --url URL or --embedded FOLDER)"
    return str(error)


@click.group(
    cls=Program,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{EXIT_CODES_OF_CHANGES} Of doctor: 4 something is amber, 5 red.",
)
@click.version_option(package_name="rowlock", message="%(prog)s %(version)s")
def program() -> None:
    """Durable background jobs for Python on nothing but PostgreSQL."""


def main(args: Sequence[str] | None = None, *, command: Sequence[str] | None = None) -> None:
    """Run the command line; ends the process. `command` is what starts another process like this one."""
    typed = list(sys.argv[1:] if args is None else args)
    again = [*OURSELVES, *typed] if command is None else list(command)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # data may hold what the terminal's encoding does not
    program.main(typed, prog_name="rowlock", obj=again)
