"""Steps: what workflows remember."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from rowlock.model.record import State
from rowlock.model.row import ClaimedJob
from rowlock.model.workflow.step import NewChild, Signal, StepUpdate, StoredStep
from rowlock.store.enqueue import insert, span_of
from rowlock.store.query import Conversation, Query, Row, array, instant, plain_array


class StepsWritten(NamedTuple):
    """An attempt whose steps were accepted, and the database's time."""

    token: str
    now: str


class SpawnedChild(NamedTuple):
    """A child of an attempt that was accepted; not new if it was written down, and so enqueued, before."""

    token: str
    child: str
    is_new: bool


def record(steps: Sequence[tuple[ClaimedJob, StepUpdate]], *, told: Mapping[str, str]) -> Query[StepsWritten]:
    """Write down steps, and what their workflows say of themselves where that has changed, by token.

    Returns the attempts that were accepted. Of two records of one step the later stands: PostgreSQL would refuse both.
    """
    by_step = {(job.token, step.key): (job.id, job.token, step) for job, step in steps}
    rows = sorted(by_step.values(), key=itemgetter(0, 1))
    ids, tokens, records = zip(*rows, strict=True)
    keys, positions, kinds, states, inputs, values, errors, attempts, delays, untils, forms, ago, signals = zip(
        *records, strict=True
    )
    once = dict(told)
    return Query(
        "step_record",
        {
            "ids": plain_array(ids),
            "tokens": plain_array(tokens),
            "keys": array(keys),
            "positions": plain_array(map(str, positions)),
            "kinds": plain_array(kinds),
            "states": plain_array(states),
            "inputs": array(inputs),
            "values": array(values),
            "errors": array(errors),
            "attempts": plain_array(map(str, attempts)),
            "delays": array(map(span_of, delays)),
            "untils": array(until and instant(until) for until in untils),
            "forms": array(forms),
            "ago": plain_array([f"{seconds:.6f}" for seconds in ago]),
            "signals": array(signals),
            # At its first step, where the statement looks.
            "told": array(once.pop(token, None) for token in tokens),
        },
        StepsWritten._make,
    )


def spawn(children: Sequence[tuple[ClaimedJob, NewChild]]) -> Query[SpawnedChild]:
    """Write down children that are about to be enqueued in the same transaction."""
    rows = sorted(children, key=lambda child: (child[0].id, child[0].token))
    return Query(
        "step_spawn",
        {
            "ids": plain_array(job.id for job, _ in rows),
            "tokens": plain_array(job.token for job, _ in rows),
            "keys": array(child.key for _, child in rows),
            "positions": plain_array(str(child.position) for _, child in rows),
            "inputs": array(child.input for _, child in rows),
            "children": plain_array(child.job.id for _, child in rows),
        },
        lambda row: SpawnedChild(*row),
    )


def spawn_all(children: Iterable[tuple[ClaimedJob, NewChild]]) -> Conversation[set[str]]:
    """Write down children and enqueue those that are new; returns the tokens that were accepted."""
    by_id = {child.job.id: (row, child) for row, child in children}
    born: list[SpawnedChild] = yield spawn(list(by_id.values()))
    if new := [by_id[one.child][1].job for one in born if one.is_new]:
        yield insert(new)
    return {one.token for one in born}


def load(ids: Iterable[str]) -> Query[tuple[str, StoredStep, str]]:
    """What these workflows remember, with the id of each, and the database's time."""
    return Query("step_load", {"ids": plain_array(ids)}, _loaded)


def _loaded(row: Row) -> tuple[str, StoredStep, str]:
    return row[0], StoredStep._make(row[1:-1]), row[-1]


def load_signals(ids: Iterable[str]) -> Query[tuple[str, Signal]]:
    """The signals to these workflows that nobody has taken, with the id of each workflow."""
    return Query("signal_load", {"ids": plain_array(ids)}, lambda row: (row[0], Signal(*row[1:])))


class RecalledWorkflow(NamedTuple):
    """A workflow as a replay needs it. The id and JSON stay text."""

    id: str
    workflow: str
    version: int
    state: State
    key: str | None
    queue: str
    args: str
    workflow_state: str | None


def recall_workflows(ids: Iterable[str]) -> Query[RecalledWorkflow]:
    """These workflows, as far as there are any."""
    return Query("workflow_recall", {"ids": plain_array(ids)}, RecalledWorkflow._make)


def recall_steps(ids: Iterable[str]) -> Query[tuple[str, StoredStep]]:
    """What these workflows remember, with the id of each."""
    return Query("step_recall", {"ids": plain_array(ids)}, lambda row: (row[0], StoredStep._make(row[1:])))
