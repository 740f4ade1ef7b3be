"""What `rowlock dashboard` does: who may log in, from where it can be reached, and what it says when it has begun."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowlock.cli import words
from rowlock.cli.dashboard.extra import with_extra
from rowlock.cli.load import importing
from rowlock.cli.logs import Logs
from rowlock.cli.opened import database_time
from rowlock.cli.options import Choice
from rowlock.db.errors import readable_errors
from rowlock.errors import InvalidOption

if TYPE_CHECKING:
    from rowlock.dashboard.http.serve import Tls

TOKENS = "ROWLOCK_DASHBOARD_TOKENS"
SECRET = "ROWLOCK_DASHBOARD_SECRET"  # noqa: S105  the name of a variable


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    host: str
    port: int
    read_only: bool
    opens: bool
    tokens_file: Path | None
    hosts: tuple[str, ...]
    proxies: tuple[str, ...]
    tls_cert: Path | None
    tls_key: Path | None


def serve(choice: Choice, asked: Asked) -> None:
    """Serve until Ctrl-C."""
    with with_extra():
        from rowlock.dashboard import Dashboard, Tokens  # noqa: PLC0415  its packages are an extra
        from rowlock.dashboard.access.tokens import new_token  # noqa: PLC0415
        from rowlock.dashboard.http import serve as serving  # noqa: PLC0415

    lines = token_lines(asked.tokens_file)
    tls = _tls(asked)
    if not serving.is_loopback(asked.host):
        _check_reachable(asked, lines)
    made, line = new_token("admin", "admin")
    auth = Tokens(lines or [line], secret=os.environ.get(SECRET) or None)
    logs = Logs("warning")
    logs.begin()
    app = choice.open()
    with importing(str(choice.app)):  # Rowlock(imports=…): forms offer the tasks, and check what they are given
        app.load()
    logs.settle()
    with readable_errors(app.database), app:
        database_time(app)  # before anybody is told to come: no database, no dashboard
        dashboard = Dashboard(app, auth=auth, hosts=_names(asked), read_only=asked.read_only)
        listening = serving.listen(asked.host, asked.port)
        address = _address(asked, listening.getsockname()[1])
        link = f"{address}/login" if lines else f"{address}/login#{made}"

        def ready() -> None:
            _announce(link, asked, with_token=not lines)

        serving.serve(dashboard, listening, proxies=asked.proxies, tls=tls, ready=ready)


def token_lines(file: Path | None) -> list[str]:
    """The lines of those who may log in: of the file, else of the environment, where blanks part them."""
    if file is None:
        return os.environ.get(TOKENS, "").split()
    written = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in written if line and not line.startswith("#")]
    if not lines:
        raise InvalidOption(f"{file} holds no token; add the line of: rowlock dashboard token NAME")
    return lines


def _check_reachable(asked: Asked, lines: Sequence[str]) -> None:
    """Others could reach it: only with tokens of theirs, and under names that were thought of."""
    if not lines:
        raise click.UsageError(
            f"--host {words.line(asked.host)} lets others reach the dashboard, so they need tokens: give --tokens-file "
            f"or ${TOKENS}, with the lines of: rowlock dashboard token NAME"
        )
    if not asked.hosts:
        raise click.UsageError(
            f"--host {words.line(asked.host)} lets others reach the dashboard, so say under which name: "
            "--allow-host rowlock.example.org"
        )
    if asked.tls_cert is None and not asked.proxies:
        click.echo(
            "warning: tokens and pages travel unencrypted; give --tls-cert and --tls-key, or --behind-proxy ADDRESS",
            err=True,
        )


def _tls(asked: Asked) -> Tls | None:
    from rowlock.dashboard.http.serve import Tls  # noqa: PLC0415  its packages are an extra

    if (asked.tls_cert is None) != (asked.tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together; give both")
    return None if asked.tls_cert is None or asked.tls_key is None else Tls(asked.tls_cert, asked.tls_key)


def _names(asked: Asked) -> list[str]:
    """The names it answers to; an address of the loopback that was asked for is one."""
    own = f"[{asked.host}]" if ":" in asked.host else asked.host
    return [*asked.hosts, *([] if asked.hosts else [own])]


def _address(asked: Asked, port: int) -> str:
    host = asked.hosts[0] if asked.hosts else _names(asked)[0]
    scheme = "http" if asked.tls_cert is None else "https"
    return f"{scheme}://{host}:{port}"


def _announce(link: str, asked: Asked, *, with_token: bool) -> None:
    click.echo(link)
    if with_token:
        click.echo("this link logs you in as admin; it is shown only now, and holds until Ctrl-C", err=True)
    if asked.read_only:
        click.echo("read-only: nothing can be changed here", err=True)
    if asked.opens:
        webbrowser.open(link)
