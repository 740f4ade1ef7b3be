"""`rowlock dashboard`."""

from __future__ import annotations

from pathlib import Path

import click

from rowlock.cli.dashboard.serve import Asked, serve
from rowlock.cli.dashboard.token import token
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


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
@click.option("--read-only", is_flag=True, help="Look only; PostgreSQL itself refuses to be changed.")
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
    choice: Choice,
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
            Asked(
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


dashboard.add_command(token)
