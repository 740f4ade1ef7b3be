"""`python -m benchmarks SCENARIO`: what Rowlock does, against what PostgreSQL could do."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable

import click
import psycopg

from benchmarks import (
    backlog,
    dashboard,
    drain,
    enqueue,
    held_snapshot,
    idle,
    idle_fleet,
    latency,
    producers,
    recovery,
    workflow,
)
from benchmarks.arena import Arena, arena
from benchmarks.measure import Broken, Case, Effort, Track
from benchmarks.report import print_json, print_table, progress_bar
from rowlock import RowlockError

Scenario = Callable[[Arena, Effort, Track], list[Case]]

SCENARIOS: dict[str, Scenario] = {
    "drain": drain.measure,
    "enqueue": enqueue.measure,
    "latency": latency.measure,
    "held-snapshot": held_snapshot.measure,
    "producers": producers.measure,
    "backlog": backlog.measure,
    "idle": idle.measure,
    "idle-fleet": idle_fleet.measure,
    "recovery": recovery.measure,
    "workflow": workflow.measure,
    "dashboard": dashboard.measure,
}
ALL = "all"


class NoFigures(click.ClickException):
    """Something broke; 1 is the exit status of a missed target."""

    exit_code = 2


@click.command(help=__doc__)
@click.argument("scenario", type=click.Choice([*SCENARIOS, ALL]))
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each case, on a line of its own.")
@click.option("--quick", is_flag=True, help="Smaller sizes and fewer rounds: under a minute for each scenario.")
@click.option("--check", is_flag=True, help="Exit with status 1 if a target is missed.")
@click.option("--size", type=click.IntRange(1), hidden=True, help="Jobs per round, or what the scenario counts.")
@click.option("--rounds", type=click.IntRange(1), hidden=True, help="How many rounds.")
def main(*, scenario: str, as_json: bool, quick: bool, check: bool, size: int | None, rounds: int | None) -> None:
    names = list(SCENARIOS) if scenario == ALL else [scenario]
    effort = Effort(quick=quick, size=size, rounds=rounds)
    try:
        cases = [case for name in names for case in _measure(name, effort, as_json=as_json)]
    except (Broken, RowlockError, psycopg.OperationalError) as error:
        raise NoFigures(str(error)) from error
    if check and any(case.met is False for case in cases):
        sys.exit(1)


def _measure(name: str, effort: Effort, *, as_json: bool) -> list[Case]:
    """Each scenario has the arena to itself, from a new schema on."""
    with arena() as ground:
        facts = {"postgres": ground.version, "python": platform.python_version(), "cpus": os.cpu_count()}
        with progress_bar(name) as bar:
            cases = SCENARIOS[name](ground, effort, bar)
    if as_json:
        print_json(cases, facts)
    else:
        print_table(name, cases, facts)
    return cases


if __name__ == "__main__":
    main(prog_name="benchmarks")
