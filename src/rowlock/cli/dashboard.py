"""`rowlock dashboard`."""

from __future__ import annotations

import click

from rowlock.cli.options import Choice, app_options, debug_option


@click.command()
@app_options(required=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8780, show_default=True, help="The port to listen on; 0 is any that is free.")
@click.option("--read-only", is_flag=True, help="Look only; the database itself refuses to be changed.")
@debug_option
def dashboard(choice: Choice, *, host: str, port: int, read_only: bool) -> None:
    """Serve the dashboard."""
    import uvicorn  # noqa: PLC0415

    from rowlock.dashboard import Dashboard  # noqa: PLC0415
    from rowlock.dashboard.login import Tokens, fresh_token  # noqa: PLC0415

    token, line = fresh_token("admin", "admin")
    app = choice.open()
    served = Dashboard(app, auth=Tokens([line]), read_only=read_only)
    click.echo(f"http://{host}:{port}/login#{token}")
    uvicorn.run(served, host=host, port=port, log_level="warning", lifespan="off")
