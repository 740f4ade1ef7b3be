"""`rowlock`, the command that has all others."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from rowlock.cli.demo import demo
from rowlock.cli.migrate import migrate
from rowlock.cli.options import is_debugging
from rowlock.cli.worker import worker
from rowlock.errors import NotConfigured, RowlockError


class Program(click.Group):
    """A group of commands; what they raise on purpose becomes one sentence and exit code 1."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except RowlockError as error:
            if is_debugging(ctx):
                raise
            raise click.ClickException(_sentence(error)) from error


def _sentence(error: RowlockError) -> str:
    if isinstance(error, NotConfigured):
        return f"{error} (on the command line: --url URL or --embedded FOLDER)"
    return str(error)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 could not be done (a sentence on standard error says why), 2 wrong usage.",
)
@click.version_option(package_name="rowlock", message="%(prog)s %(version)s")
def program() -> None:
    """Durable background jobs for Python on nothing but PostgreSQL."""


for command in (demo, migrate, worker):
    program.add_command(command)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; ends the process."""
    typed = list(sys.argv[1:] if args is None else args)
    program.main(typed, prog_name="rowlock", obj=typed)
