"""`rowlock dashboard`: serve the dashboard, make tokens for it."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rowlock.cli.shared import text
from rowlock.cli.shared.import_app import importing
from rowlock.cli.shared.log_setup import LogSetup
from rowlock.cli.shared.options import AppChoice, app_options, database_time, debug_option
from rowlock.cli.shared.output import EXIT_CODES, json_option, print_json
from rowlock.db.errors import readable_errors
from rowlock.errors import InvalidOption, RowlockError

if TYPE_CHECKING:
    from rowlock.dashboard.http.serve import Tls

TOKENS = "ROWLOCK_DASHBOARD_TOKENS"
SECRET = "ROWLOCK_DASHBOARD_SECRET"  # noqa: S105  the name of a variable
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What was typed for `rowlock dashboard`."""

    host: str
    port: int
    read_only: bool
    opens: bool
    tokens_file: Path | None
    hosts: tuple[str, ...]
    proxies: tuple[str, ...]
    tls_cert: Path | None
    tls_key: Path | None


@click.group(
    invoke_without_command=True,
    short_help="Serve the dashboard; make tokens for it.",
    epilog=f"{EXIT_CODES}. Ctrl-C ends it: 0.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8780,
    show_default=True,
    help="The port to listen on; 0 is any that is free.",
)
@click.option("--read-only", is_flag=True, help="Change nothing; PostgreSQL itself refuses it.")
@click.option("--open", "opens", is_flag=True, help="Open it in a browser.")
@click.option(
    "--tokens-file",
    type=_FILE,
    help="Who may log in, a line NAME:ROLE:SHA256 each; else those in $ROWLOCK_DASHBOARD_TOKENS.",
)
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="A name under which it is reached; may be repeated."
)
@click.option(
    "--behind-proxy",
    "proxies",
    metavar="ADDRESS",
    multiple=True,
    help="A proxy whose X-Forwarded-For and -Proto are believed; may be repeated.",
)
@click.option("--tls-cert", type=_FILE, help="A certificate, to serve TLS without a proxy.")
@click.option("--tls-key", type=_FILE, help="Its key.")
@app_options(required=False)
@debug_option
@click.pass_context
def dashboard(
    ctx: click.Context,
    choice: AppChoice,
    /,
    *,
    host: str,
    port: int,
    read_only: bool,
    opens: bool,
    tokens_file: Path | None,
    hosts: tuple[str, ...],
    proxies: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Serve the dashboard until Ctrl-C.

    On this machine alone it makes a token for you and prints a link with it. Others can reach it only with tokens of
    theirs (--tokens-file, or $ROWLOCK_DASHBOARD_TOKENS) and under a name that you allow.
    """
    if ctx.invoked_subcommand is None:
        serve(
            choice,
            ServeOptions(
                host=host,
                port=port,
                read_only=read_only,
                opens=opens,
                tokens_file=tokens_file,
                hosts=hosts,
                proxies=proxies,
                tls_cert=tls_cert,
                tls_key=tls_key,
            ),
        )


def serve(choice: AppChoice, typed: ServeOptions) -> None:
    """Serve until Ctrl-C."""
    with with_extra():
        from rowlock.dashboard import Dashboard, Tokens  # noqa: PLC0415  its packages are an extra
        from rowlock.dashboard.access.tokens import new_token  # noqa: PLC0415
        from rowlock.dashboard.http import serve as serving  # noqa: PLC0415

    lines = token_lines(typed.tokens_file)
    tls = _tls(typed)
    if not serving.is_loopback(typed.host):
        _check_reachable(typed, lines)
    made, line = new_token("admin", "admin")
    auth = Tokens(lines or [line], secret=os.environ.get(SECRET) or None)
    logs = LogSetup("warning")
    logs.begin()
    app = choice.open()
    with importing(str(choice.app)):  # Rowlock(imports=…): forms offer the tasks, and check what they are given
        app.load()
    logs.settle()
    with readable_errors(app.database), app:
        database_time(app)  # before the link is printed: no database, no dashboard
        dashboard = Dashboard(app, auth=auth, hosts=_names(typed), read_only=typed.read_only)
        listening = serving.listen(typed.host, typed.port)
        address = _address(typed, listening.getsockname()[1])
        link = f"{address}/login" if lines else f"{address}/login#{made}"

        def ready() -> None:
            _announce(link, typed, with_token=not lines)

        serving.serve(dashboard, listening, proxies=typed.proxies, tls=tls, ready=ready)


def token_lines(file: Path | None) -> list[str]:
    """The tokens of those who may log in, from the file, else from the environment, separated by blanks."""
    if file is None:
        return os.environ.get(TOKENS, "").split()
    written = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in written if line and not line.startswith("#")]
    if not lines:
        raise InvalidOption(f"{file} holds no token; add the line of: rowlock dashboard token NAME")
    return lines


def _check_reachable(typed: ServeOptions, lines: Sequence[str]) -> None:
    """Refuse an address that others can reach without tokens of theirs, or without the names to reach it under."""
    if not lines:
        raise click.UsageError(
            f"--host {text.line(typed.host)} lets others reach the dashboard, so they need tokens: give --tokens-file "
            f"or ${TOKENS}, with the lines of: rowlock dashboard token NAME"
        )
    if not typed.hosts:
        raise click.UsageError(
            f"--host {text.line(typed.host)} lets others reach the dashboard, so say under which name: "
            "--allow-host rowlock.example.org"
        )
    if typed.tls_cert is None and not typed.proxies:
        click.echo(
            "warning: tokens and pages travel unencrypted; give --tls-cert and --tls-key, or --behind-proxy ADDRESS",
            err=True,
        )


def _tls(typed: ServeOptions) -> Tls | None:
    from rowlock.dashboard.http.serve import Tls  # noqa: PLC0415  its packages are an extra

    if (typed.tls_cert is None) != (typed.tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together; give both")
    return None if typed.tls_cert is None or typed.tls_key is None else Tls(typed.tls_cert, typed.tls_key)


def _names(typed: ServeOptions) -> list[str]:
    """The host names that are allowed; without --allow-host, the address that was typed."""
    own = f"[{typed.host}]" if ":" in typed.host else typed.host
    return [*typed.hosts, *([] if typed.hosts else [own])]


def _address(typed: ServeOptions, port: int) -> str:
    host = typed.hosts[0] if typed.hosts else _names(typed)[0]
    scheme = "http" if typed.tls_cert is None else "https"
    return f"{scheme}://{host}:{port}"


def _announce(link: str, typed: ServeOptions, *, with_token: bool) -> None:
    click.echo(link)
    if with_token:
        click.echo("this link logs you in as admin; it is shown only now, and holds until Ctrl-C", err=True)
    if typed.read_only:
        click.echo("read-only: nothing can be changed here", err=True)
    if typed.opens:
        webbrowser.open(link)


@dashboard.command(epilog=f"{EXIT_CODES}.")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "operator", "admin"]),
    default="viewer",
    show_default=True,
    help="A viewer looks; an operator retries, cancels and pauses; an admin deletes, enqueues and edits, too.",
)
@json_option
@debug_option
def token(*, name: str, role: str, as_json: bool) -> None:
    """Make a token for NAME; the audit records what its holder does under that name.

    The token is shown once, and kept nowhere. The line goes into the file of --tokens-file; it holds only a hash.
    """
    with with_extra():
        from rowlock.dashboard.access.tokens import new_token  # noqa: PLC0415  its packages are an extra
        from rowlock.dashboard.access.visitor import check_role  # noqa: PLC0415
    made, line = new_token(name, check_role(role))
    if as_json:
        print_json({"name": name, "role": role, "token": made, "line": line})
    else:
        click.echo(f"token  {made}\nline   {line}")


@contextmanager
def with_extra() -> Iterator[None]:
    """Turn an import of the dashboard's packages that fails inside it into a sentence that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "rowlock":
            raise
        raise RowlockError(f"the dashboard needs {error.name}; run: pip install 'rowlock[dashboard]'") from error
