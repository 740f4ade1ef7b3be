"""`rowlock schedules show`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import click

from rowlock.cli import slots, words
from rowlock.cli.masking import masked, reveal_option
from rowlock.cli.opened import database_time, opened
from rowlock.cli.options import Choice, app_options, debug_option
from rowlock.cli.output import EXIT_CODES_OF_VERBS, json_option, print_json
from rowlock.model.names import versioned
from rowlock.model.results import Firing
from rowlock.model.schedule.edit import edits_of, rule_text
from rowlock.model.schedule.schedule import Schedule

_HIDDEN = "(its arguments are not this role's to read)"
_RULE = ("cron", "tz", "every")


@click.command(epilog=EXIT_CODES_OF_VERBS.replace("nothing matched", "there is no such schedule"))
@click.argument("name")
@reveal_option
@json_option
@app_options(required=False)
@debug_option
def show(choice: Choice, *, name: str, reveal: bool, as_json: bool) -> None:
    """Show one schedule: what its rule means, what code says and an operator changed, what became of its slots."""
    with opened(choice) as app:
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
    from rowlock.cli.tables import Column, block, facts, show  # noqa: PLC0415  draws

    facts(_facts(schedule) | _standing(schedule, now))
    block("arguments", _HIDDEN if schedule.args is None else json.dumps(schedule.args, indent=2, ensure_ascii=False))
    if schedule.edits is not None and schedule.declared is not None:
        columns = [Column("what", least=8), Column("code says", least=16), Column("an operator says", least=16)]
        show(
            columns,
            _edited(schedule.declared, edits_of(schedule.edits)),
            title=f"\nedited {_signed(schedule.edits, now)}",
        )


def _facts(schedule: Schedule) -> dict[str, object]:
    return {
        "schedule": words.line(schedule.name),
        "rule": words.line(slots.rule(schedule)),
        "that is": words.line(slots.rule_in_words(schedule)),
        "task": words.line(versioned(schedule.task, schedule.version)),
        "queue": words.line(schedule.queue),
        "priority": schedule.priority,
        "attempts": schedule.attempts,
        "expires": schedule.expires and f"{words.span(schedule.expires)} after its time",
        "tags": words.line(", ".join(schedule.tags)),
        "jitter": f"up to {words.span(schedule.jitter)}" if schedule.jitter else "",
        "overlap": slots.OVERLAP.get(schedule.overlap, schedule.overlap),
        "catch-up": slots.catch_up(schedule.catch_up),
        "at boot": "runs also when a worker starts" if schedule.at_boot else "",
        "from": _from(schedule),
    }


def _from(schedule: Schedule) -> str:
    if schedule.is_orphan:
        return "code that no live worker has any more: it goes on until somebody removes it"
    return "declared in code" if schedule.is_declared else "added by an operator"


def _standing(schedule: Schedule, now: datetime) -> dict[str, object]:
    return {
        "state": slots.state(schedule, now),
        "paused by": schedule.paused_by and words.line(f"{schedule.paused_by}, {words.age(schedule.paused_at, now)}"),
        "why": words.line(schedule.paused_why or ""),
        "next": slots.when(schedule.next_at, schedule, now),
        "last": slots.when(schedule.last_at, schedule, now),
        "waiting": schedule.held and f"{slots.when(schedule.held, schedule, now)}, for the end of the last job",
        "live jobs": ", ".join(map(str, schedule.jobs)),
        "created": f"{words.instant(schedule.created_at)} ({words.age(schedule.created_at, now)})",
    }


def _signed(edits: Mapping[str, Any], now: datetime) -> str:
    """Who changed it last, when and why."""
    try:
        ago = words.age(datetime.fromisoformat(edits["at"]), now)
    except (KeyError, TypeError, ValueError):  # whoever writes SQL may leave it out
        ago = "some time ago"
    why = f": {edits['why']}" if edits.get("why") else ""
    return words.line(f"by {edits.get('by', 'somebody')}, {ago}{why}")


def _edited(declared: Mapping[str, Any], edits: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    rows = [(name, _said(name, declared.get(name)), _said(name, edits[name])) for name in edits if name not in _RULE]
    if "every" in edits:
        rows.insert(0, ("rule", rule_text(declared), rule_text(edits)))
    return rows


def _said(name: str, value: object) -> str:
    if name in ("jitter", "expires") and isinstance(value, int | float):
        return words.span(timedelta(seconds=value))
    return value if isinstance(value, str) else json.dumps(value)


def _show_firings(firings: Sequence[Firing], now: datetime) -> None:
    from rowlock.cli.tables import Column, id_width, show  # noqa: PLC0415  draws

    digits = id_width()
    columns = [
        Column("slot", least=20),
        Column("that is", least=9, rank=2),
        Column("what", least=12),
        Column("state", least=9, rank=1),
        Column("job", least=digits, rank=3),
    ]
    show(columns, (_row(one, now, digits=digits) for one in firings), title="\nlatest slots")


def _row(firing: Firing, now: datetime, *, digits: int) -> tuple[object, ...]:
    job = firing.job and str(firing.job)[-digits:]
    return words.instant(firing.slot), words.age(firing.slot, now), _became(firing), firing.state, job


def _became(firing: Firing) -> str:
    if firing.job is None:
        return f"passed over: {firing.reason}"
    return f"fired: {firing.reason}" if firing.reason else "fired"
