"""`rowlock completion`: print the script that completes commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from rowlock.cli.shared.output import EXIT_CODES

# No shell asks for anything else, and a database is not asked: a key press must not wait for one.
SHELLS = ("bash", "zsh", "fish")


@click.command(epilog=f"{EXIT_CODES}.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options.

    \b
    bash: rowlock completion bash > ~/.local/share/bash-completion/completions/rowlock
    zsh:  rowlock completion zsh > "${fpath[1]}/_rowlock"
    fish: rowlock completion fish > ~/.config/fish/completions/rowlock.fish

    Then start a new shell.
    """  # noqa: D301  click knows the escaped character as: leave these lines as they are
    kind = get_completion_class(shell)
    if kind is None:  # click knows all three
        raise click.ClickException(f"this version of click cannot complete for {shell}; upgrade it")
    root = ctx.find_root()
    click.echo(kind(root.command, {}, "rowlock", "_ROWLOCK_COMPLETE").source())
