"""`rowlock migrate`: bring the schema up to date."""

from __future__ import annotations

import click

from rowlock.cli.shared.options import AppChoice, app_options, debug_option
from rowlock.cli.shared.output import json_option, print_json
from rowlock.db.database import Database
from rowlock.db.errors import readable_errors
from rowlock.store.roles import names


@click.command(
    epilog="Exit codes: 0 the schema is up to date (with --sql: the SQL is printed), 1 it could not be reached or "
    "changed, 2 wrong usage."
)
@app_options(required=False)
@click.option(
    "--roles",
    is_flag=True,
    help="Also make the roles SCHEMA_enqueue, _results, _worker, _viewer and _operator, and give each its rights.",
)
@click.option("--sql", is_flag=True, help="Print the SQL that would be run, and change nothing.")
@json_option
@debug_option
def migrate(choice: AppChoice, *, roles: bool, sql: bool, as_json: bool) -> None:
    """Bring the database's schema up to date.

    Safe to run from many places at once, and again and again. Without --app it takes the database from --url,
    --embedded, $ROWLOCK_URL or $DATABASE_URL.
    """
    if sql and as_json:
        raise click.UsageError("give --sql or --json, not both")
    app = choice.open()
    with readable_errors(app.database):
        if sql:
            _print_pending(app.database, roles=roles)
            return
        applied = app.migrate(roles=roles)
    address, schema = app.database.address, app.database.schema
    granted = names(schema) if roles else []
    if as_json:
        print_json({"database": str(address), "schema": schema, "applied": applied, "roles": granted})
        return
    for name in applied:
        click.echo(f"applied {name}")
    for name in granted:
        click.echo(f"role {name} has its rights")
    click.echo(f"schema {schema} in {address} is up to date")


def _print_pending(database: Database, *, roles: bool) -> None:
    pending = database.pending_sql(roles=roles)
    if pending:
        click.echo(f"begin;\n{pending.strip()}\ncommit;")
    else:
        # Not on standard output: what is there can be sent to psql as it is.
        click.echo(f"schema {database.schema} in {database.address} is up to date", err=True)
