"""`rowlock workflows signal`."""

from __future__ import annotations

import json
from contextlib import suppress
from uuid import UUID

import click

from rowlock.app.app import Rowlock
from rowlock.cli import words
from rowlock.cli.filters import usage
from rowlock.cli.ids import JOB_ID, is_part, whole_id
from rowlock.cli.opened import opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, nothing_matched, print_json
from rowlock.errors import JobNotFound, SignalRefused


@click.command(
    epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such workflow, or it takes no more signals")
)
@click.argument("target", metavar="ID|KEY")
@click.argument("name")
@click.option("--payload", metavar="JSON", help='What it carries: \'{"by": "ada"}\'.')
@click.option("--key", metavar="KEY", help="Not twice: a second signal with this key is none.")
@json_option
@app_options(required=False)
@debug_option
def signal(choice: Choice, *, target: str, name: str, payload: str | None, key: str | None, as_json: bool) -> None:
    """Send a workflow the signal NAME, and wake it if it waits for that.

    The workflow is named by its id, by its key, or, where that is no key, by 8 or more digits of the beginning or end
    of its id. The signal is stored, and taken by one wait at most, also by one that begins later.
    """
    carried = _parsed(payload)
    with opened(choice) as app, usage():
        try:
            target, sent = _send(app, target, name, carried, key=key)
        except SignalRefused as refused:
            nothing_matched(words.line(str(refused)))
    if as_json:
        print_json({"target": target, "signal": name, "key": key, "sent": sent})
    elif sent:
        click.echo(f"signal {words.line(name)} is stored for {words.line(target)}")
    else:
        click.echo(f"a signal with the key {words.line(repr(key))} was sent before; nothing was stored")


def _send(app: Rowlock, target: str, name: str, payload: object, *, key: str | None) -> tuple[str, bool]:
    """Which workflow was meant, and whether the signal is stored. Keys come first: some look like parts of ids."""
    try:
        return target, app.signal(target, name, payload, key=key)
    except JobNotFound:
        found = _found(app, target)
        if found is None:
            raise
    return str(found), app.signal(found, name, payload, key=key)


def _found(app: Rowlock, target: str) -> UUID | None:
    with suppress(JobNotFound):
        return whole_id(app, JOB_ID.convert(target, None, None)) if is_part(target) else None
    return None


def _parsed(payload: str | None) -> object:
    if payload is None:
        return None
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--payload is no JSON: {error}; a text is written '\"so\"'") from error
