"""`rowlock`: the group of all commands, and how their errors end."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import click

from rowlock.cli.bench import bench
from rowlock.cli.completion import completion
from rowlock.cli.config import config
from rowlock.cli.dashboard import dashboard
from rowlock.cli.demo import demo
from rowlock.cli.doctor import doctor
from rowlock.cli.explain import explain
from rowlock.cli.jobs import jobs
from rowlock.cli.migrate import migrate
from rowlock.cli.queues import queues
from rowlock.cli.schedules import schedules
from rowlock.cli.shared import text
from rowlock.cli.shared.options import is_debugging
from rowlock.cli.shared.output import EXIT_CODES_OF_CHANGES, INTERRUPTED, NOTHING_MATCHED, OURSELVES
from rowlock.cli.stats import stats
from rowlock.cli.tasks import tasks
from rowlock.cli.worker import worker
from rowlock.cli.workers import workers
from rowlock.cli.workflows import workflows
from rowlock.errors import JobNotFound, NotConfigured, RowlockError, ScheduleNotFound


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
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{EXIT_CODES_OF_CHANGES} Of doctor: 4 something is amber, 5 red.",
)
@click.version_option(package_name="rowlock", message="%(prog)s %(version)s")
def program() -> None:
    """Durable background jobs for Python on nothing but PostgreSQL."""


for command in (
    *(bench, completion, config, dashboard, demo, doctor, explain, jobs, migrate),
    *(queues, schedules, stats, tasks, worker, workers, workflows),
):
    program.add_command(command)


def main(args: Sequence[str] | None = None, *, command: Sequence[str] | None = None) -> None:
    """Run the command line; ends the process. `command` is what starts another process like this one."""
    typed = list(sys.argv[1:] if args is None else args)
    again = [*OURSELVES, *typed] if command is None else list(command)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # data may hold what the terminal's encoding does not
    program.main(typed, prog_name="rowlock", obj=again)
