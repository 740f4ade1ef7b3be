"""Verbs: what operators do to jobs: in which states, in which words, and who may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from rowlock.errors import InvalidOption
from rowlock.model.filter import ENDED, LIVE, STATES, Filter
from rowlock.model.names import shown
from rowlock.model.record import State

VerbName = Literal["retry", "cancel", "run_next", "move", "reprioritise", "delete"]
VerbRole = Literal["operator", "admin"]

PARKED_FOR: Final = frozenset({"signal", "children"})
"""What parked workflows wait for that are stored as waiting; those that wait for a time are stored as ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkVerb:
    """A verb: the states it can change, those it changes when the filter names none, and those it looks at then.

    Jobs that it looks at and does not change are passed over, and counted; so are live workflows that have begun, and
    children, if it `spares` them. In the dashboard it needs the `role`.
    """

    name: VerbName
    changes: frozenset[State]
    looks: frozenset[State]
    by_default: frozenset[State] | None = None  # None: all that it can change
    spares: bool = False
    role: VerbRole = "operator"
    label: str  # of its button
    says: str  # what it does to jobs
    done: str  # what was done: retried 3 jobs
    outcome: tuple[str, str]  # what became of one changed job, and of several: is cancelled, are cancelled
    outcome_of_one: str  # the same for the one job that was meant
    passes_over: str = ""  # which jobs it does not change, where that may surprise

    @property
    def words(self) -> str:
        """Its name within a sentence: run next."""
        return self.name.replace("_", " ")

    def check(self, asked: Filter) -> None:
        """Refuse a filter that asks for jobs that the verb cannot change, or that is empty, maybe by mistake."""
        if asked.is_empty:
            raise InvalidOption(
                f"this filter is empty, so {self.name} would be for every job; say which ones, by state=, queue=, "
                "task=, ids= or another field, or write Filter.all() if every job is meant"
            )
        self.states(asked)

    def states(self, asked: Filter) -> frozenset[State]:
        """The states to look at for this filter; InvalidOption if it names none that the verb can change."""
        if asked.is_of_ended and not (asked.states or self.changes) & self.changes & ENDED:
            raise InvalidOption(
                f"{self.name} is for jobs that live, and ended_after= or ended_before= asks for those that have ended; "
                "leave it out"
            )
        if asked.states is None:
            return self.looks & ENDED if asked.is_of_ended else self.looks
        if not asked.states & self.changes:
            raise InvalidOption(
                f"{self.name} is for jobs that are {_listed(self.changes)}, and this filter asks for those that are "
                f"{_listed(asked.states)}; {_ADVICE.get(self.name, 'change its state=')}"
            )
        return asked.states & (self.changes | self.looks)

    def targets(self, asked: Filter) -> frozenset[State]:
        """The states that it changes for this filter."""
        if asked.states is None:
            return self.changes if self.by_default is None else self.by_default
        return asked.states & self.changes


_ADVICE: Final = {
    "retry": "to run a live job at once, use run_next",
    "cancel": "to be rid of an ended job, use delete",
    "run_next": "to run an ended job again, use retry",
}

VERBS: Final[dict[VerbName, BulkVerb]] = {
    # A cancelled job was cancelled on purpose: only a filter that names the state brings it back.
    "retry": BulkVerb(
        name="retry",
        changes=ENDED,
        looks=frozenset({"failed", "cancelled"}),
        by_default=frozenset({"failed"}),
        label="Retry",
        says="run ended jobs again",
        done="retried",
        outcome=("will run again", "will run again"),
        outcome_of_one="The job will run again",
        passes_over="cancelled jobs are retried only if the filter names that state, and no job whose key is taken",
    ),
    "cancel": BulkVerb(
        name="cancel",
        changes=LIVE,
        looks=LIVE,
        label="Cancel",
        says="cancel jobs that have not ended",
        done="cancelled",
        outcome=("is cancelled", "are cancelled"),
        outcome_of_one="The job is cancelled; if it runs, it is told to stop",
    ),
    "run_next": BulkVerb(
        name="run_next",
        changes=frozenset({"ready"}),
        looks=LIVE,
        label="Run next",
        says="put ready jobs before all others of their queues",
        done="put first:",
        outcome=("runs next", "run next"),
        outcome_of_one="The job runs next",
        passes_over="jobs that run or wait, and workflows that sleep, cannot be put first",
    ),
    "move": BulkVerb(
        name="move",
        changes=LIVE - {"running"},
        looks=LIVE,
        label="Move",
        says="put jobs that have not started on another queue",
        done="moved",
        outcome=("was moved", "were moved"),
        outcome_of_one="The job was moved",
        passes_over="running jobs are not moved",
    ),
    "reprioritise": BulkVerb(
        name="reprioritise",
        changes=LIVE - {"running"},
        looks=LIVE,
        label="Priority",
        says="give jobs that have not started another priority",
        done="reprioritised",
        outcome=("has the new priority", "have the new priority"),
        outcome_of_one="The job has another priority now",
        passes_over="running jobs keep their priority",
    ),
    "delete": BulkVerb(
        name="delete",
        changes=frozenset(STATES) - {"running"},
        looks=frozenset(STATES),
        spares=True,
        role="admin",
        label="Delete",
        says="remove jobs that do not run, and leave only the events",
        done="deleted",
        outcome=("is deleted", "are deleted"),
        outcome_of_one="The job is deleted",
        passes_over=(
            "running jobs, workflows that have begun and children of workflows are not deleted; cancel them first"
        ),
    ),
}


def verb_named(name: str) -> BulkVerb:
    """The verb of this name."""
    for verb in VERBS.values():
        if verb.name == name:
            return verb
    raise InvalidOption(f"verb {shown(name)} is none of {', '.join(get_args(VerbName))}")


def _listed(states: frozenset[State]) -> str:
    return " or ".join(state for state in STATES if state in states)
