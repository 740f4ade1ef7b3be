"""`rowlock schedules`: list, show, next slots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from rowlock.cli.schedules import schedule_text
from rowlock.cli.shared import text
from rowlock.cli.shared.options import AppChoice, app_options, database_time, debug_option, open_app
from rowlock.cli.shared.output import (
    EXIT_CODES_OF_READS,
    exit_codes,
    json_option,
    masked,
    print_json,
    reveal_option,
)
from rowlock.model.names import versioned
from rowlock.model.results import Firing
from rowlock.model.schedule.edit import edits_of, rule_text
from rowlock.model.schedule.schedule import Schedule


@click.command("list", epilog=EXIT_CODES_OF_READS)
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def list_schedules(choice: AppChoice, *, reveal: bool, as_json: bool) -> None:
    """List schedules: their rules, when they run next, and which are paused, edited or orphans."""
    with open_app(choice) as app:
        found = masked(app.schedules.list(), reveal=reveal)
        now = database_time(app)
    if as_json:
        print_json({"schedules": [schedule.to_dict() for schedule in found]})
    elif found:
        _show_list(found, now)
    else:
        click.echo("there is no schedule: declare one with @app.task.every(…), or add one here", err=True)


def _show_list(found: Iterable[Schedule], now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    columns = [
        Column("schedule", least=32),
        Column("rule", least=16),
        Column("zone", least=6, rank=3),
        Column("task", least=12, rank=2),
        Column("next", least=9),
        Column("on its clock", least=9, rank=4),
        Column("in UTC", least=20, rank=5),
        Column("last", least=8, rank=6),
        Column("state", least=12),
    ]
    print_table(columns, (_list_row(schedule, now) for schedule in found))


def _list_row(schedule: Schedule, now: datetime) -> tuple[str, ...]:
    return (
        schedule.name,
        schedule_text.rule(schedule),
        schedule_text.zone(schedule),
        versioned(schedule.task, schedule.version),
        text.age(schedule.next_at, now),
        schedule_text.clock(schedule.next_at, schedule, now),
        text.instant(schedule.next_at),
        text.age(schedule.last_at, now),
        schedule_text.state(schedule, now),
    )


_HIDDEN = "(its arguments are not this role's to read)"
_RULE = ("cron", "tz", "every")


@click.command(epilog=exit_codes("there is no such schedule"))
@click.argument("name")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def show(choice: AppChoice, *, name: str, reveal: bool, as_json: bool) -> None:
    """Show one schedule: what its rule means, what code says and an operator changed, what became of its slots."""
    with open_app(choice) as app:
        schedule = masked(app.schedules.get(name), reveal=reveal)
        firings = app.schedules.firings(name)
        now = database_time(app)
    if as_json:
        print_json({"schedule": schedule.to_dict(), "firings": [firing.to_dict() for firing in firings]})
        return
    _show(schedule, now)
    if firings:
        _show_firings(firings, now)


def _show(schedule: Schedule, now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, print_block, print_facts, print_table  # noqa: PLC0415  draws

    print_facts(_facts(schedule) | _standing(schedule, now))
    print_block(
        "arguments", _HIDDEN if schedule.args is None else json.dumps(schedule.args, indent=2, ensure_ascii=False)
    )
    if schedule.edits is not None and schedule.declared is not None:
        columns = [Column("what", least=8), Column("code says", least=16), Column("an operator says", least=16)]
        print_table(
            columns,
            _edited(schedule.declared, edits_of(schedule.edits)),
            title=f"\nedited {_signed(schedule.edits, now)}",
        )


def _facts(schedule: Schedule) -> dict[str, object]:
    return {
        "schedule": text.line(schedule.name),
        "rule": text.line(schedule_text.rule(schedule)),
        "that is": text.line(schedule_text.rule_in_words(schedule)),
        "task": text.line(versioned(schedule.task, schedule.version)),
        "queue": text.line(schedule.queue),
        "priority": schedule.priority,
        "attempts": schedule.attempts,
        "expires": schedule.expires and f"{text.span(schedule.expires)} after its time",
        "tags": text.line(", ".join(schedule.tags)),
        "jitter": f"up to {text.span(schedule.jitter)}" if schedule.jitter else "",
        "overlap": schedule_text.OVERLAP.get(schedule.overlap, schedule.overlap),
        "catch-up": schedule_text.catch_up(schedule.catch_up),
        "at boot": "runs also when a worker starts" if schedule.at_boot else "",
        "from": _from(schedule),
    }


def _from(schedule: Schedule) -> str:
    if schedule.is_orphan:
        return "code that no live worker has any more: it goes on until somebody removes it"
    return "declared in code" if schedule.is_declared else "added by an operator"


def _standing(schedule: Schedule, now: datetime) -> dict[str, object]:
    return {
        "state": schedule_text.state(schedule, now),
        "paused by": schedule.paused_by and text.line(f"{schedule.paused_by}, {text.age(schedule.paused_at, now)}"),
        "why": text.line(schedule.paused_why or ""),
        "next": schedule_text.when(schedule.next_at, schedule, now),
        "last": schedule_text.when(schedule.last_at, schedule, now),
        "waiting": schedule.held and f"{schedule_text.when(schedule.held, schedule, now)}, for the end of the last job",
        "live jobs": ", ".join(map(str, schedule.jobs)),
        "created": f"{text.instant(schedule.created_at)} ({text.age(schedule.created_at, now)})",
    }


def _signed(edits: Mapping[str, Any], now: datetime) -> str:
    """Who changed it last, when and why."""
    try:
        ago = text.age(datetime.fromisoformat(edits["at"]), now)
    except (KeyError, TypeError, ValueError):  # edits that were made in SQL may lack it
        ago = "some time ago"
    why = f": {edits['why']}" if edits.get("why") else ""
    return text.line(f"by {edits.get('by', 'somebody')}, {ago}{why}")


def _edited(declared: Mapping[str, Any], edits: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    rows = [
        (name, _edit_value(name, declared.get(name)), _edit_value(name, edits[name]))
        for name in edits
        if name not in _RULE
    ]
    if "every" in edits:
        rows.insert(0, ("rule", rule_text(declared), rule_text(edits)))
    return rows


def _edit_value(name: str, value: object) -> str:
    if name in ("jitter", "expires") and isinstance(value, int | float):
        return text.span(timedelta(seconds=value))
    return value if isinstance(value, str) else json.dumps(value)


def _show_firings(firings: Sequence[Firing], now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, id_width, print_table  # noqa: PLC0415  draws

    digits = id_width()
    columns = [
        Column("slot", least=20),
        Column("that is", least=9, rank=2),
        Column("what", least=12),
        Column("state", least=9, rank=1),
        Column("job", least=digits, rank=3),
    ]
    print_table(columns, (_row(one, now, digits=digits) for one in firings), title="\nlatest slots")


def _row(firing: Firing, now: datetime, *, digits: int) -> tuple[object, ...]:
    job = firing.job and str(firing.job)[-digits:]
    return text.instant(firing.slot), text.age(firing.slot, now), _became(firing), firing.state, job


def _became(firing: Firing) -> str:
    if firing.job is None:
        return f"passed over: {firing.reason}"
    return f"fired: {firing.reason}" if firing.reason else "fired"


@click.command("next", epilog=exit_codes("there is no such schedule"))
@click.argument("name")
@click.option("--count", type=click.IntRange(1, 1000), metavar="N", default=5, show_default=True, help="How many.")
@json_option
@app_options(required=False)
@debug_option
def next_slots(choice: AppChoice, *, name: str, count: int, as_json: bool) -> None:
    """Print the next slots of a schedule, on the clocks of its zone and in UTC."""
    with open_app(choice) as app:
        schedule = app.schedules.get(name)
        coming = app.schedules.next(name, count)
        now = database_time(app)
    if as_json:
        print_json({"name": schedule.name, "slots": [slot.isoformat() for slot in coming]})
    else:
        _show_slots(schedule, coming, now)


def _show_slots(schedule: Schedule, coming: Sequence[datetime], now: datetime) -> None:
    from rowlock.cli.shared.tables import Column, print_table  # noqa: PLC0415  draws

    if schedule.is_paused:
        click.echo(
            f"it is paused {schedule_text.pause_end(schedule, now)}: slots before that are passed over", err=True
        )
    if schedule.jitter:
        click.echo(f"each job runs up to {text.span(schedule.jitter)} later, by chance", err=True)
    columns = [Column("in UTC", least=20), Column("on its clock", least=9), Column("that is", least=9)]
    print_table(
        columns,
        ((text.instant(slot), schedule_text.clock(slot, schedule, now), text.age(slot, now)) for slot in coming),
    )
