"""`rowlock dashboard token`."""

from __future__ import annotations

import click

from rowlock.cli.dashboard.extra import with_extra
from rowlock.cli.options import debug_option
from rowlock.cli.output import EXIT_CODES, json_option, print_json


@click.command(epilog=f"{EXIT_CODES}.")
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
    """Make a token for NAME, who is then who the audit says did it.

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
