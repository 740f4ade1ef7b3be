"""Options of a worker: its settings as they are typed, for `worker` and `config`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from rowlock.cli.shared.log_setup import FORMATS, LEVELS
from rowlock.cli.shared.options import Command, add_options
from rowlock.db.setting import Setting
from rowlock.errors import InvalidOption
from rowlock.worker.settings import DEADLINE, GRACE, LEASE, PROCESSES, QUEUES, RENEW, SLOTS, THREADS


def _option(
    setting: Setting[Any], *, metavar: str, hint: str, show_default: str | bool = True, name: str | None = None
) -> Callable[[Command], Command]:
    def read(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> object:
        try:
            return None if value is None else setting.read(value)
        except InvalidOption as fault:
            raise click.BadParameter(str(fault)) from None

    return click.option(
        f"--{setting.name}",
        name or setting.name,
        callback=read,
        default=_as_typed(setting.default),
        envvar=setting.variable,
        show_envvar=True,
        metavar=metavar,
        show_default=show_default,
        help=hint,
    )


def _as_typed(value: object) -> str | None:
    """A value as it would be typed."""
    match value:
        case timedelta():
            return f"{value.total_seconds():g}"
        case tuple():
            return ",".join(value)
        case _:
            return None if value is None else str(value)


_WORKER_OPTIONS = (
    _option(
        QUEUES,
        metavar="NAMES",
        hint="mail,default: default only when mail is empty. mail=3,default=1: by chance, mail three times as often.",
    ),
    _option(SLOTS, metavar="N", hint="Jobs at once, per process."),
    _option(PROCESSES, metavar="N", hint="Worker processes."),
    _option(THREADS, metavar="N", hint="For sync handlers.", show_default="slots, at most 32"),
    _option(LEASE, metavar="SECONDS", hint="How long a worker that cannot be reached keeps its jobs."),
    _option(RENEW, metavar="SECONDS", hint="How often a worker renews its lease.", show_default="a third of the lease"),
    _option(
        DEADLINE,
        name="worker_deadline",  # the app has one of its own
        metavar="SECONDS",
        hint="How long a worker waits for PostgreSQL.",
        show_default="a sixth of the lease",
    ),
    _option(GRACE, metavar="SECONDS", hint="How long running jobs may go on when the worker stops."),
    click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        envvar="ROWLOCK_LOG_LEVEL",
        show_envvar=True,
        show_default=True,
    ),
    click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        default="text",
        envvar="ROWLOCK_LOG_FORMAT",
        show_envvar=True,
        show_default=True,
        help="Where the app has not set up logging itself.",
    ),
    click.option(
        "--log-config",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        envvar="ROWLOCK_LOG_CONFIG",
        show_envvar=True,
        help="Logging as a file says: .json or .toml for dictConfig, .ini for fileConfig. It wins over all else.",
    ),
)


def worker_options(command: Command) -> Command:
    """Give a command the options of a worker."""
    return add_options(command, _WORKER_OPTIONS)  # type: ignore[return-value]  # click keeps the function
