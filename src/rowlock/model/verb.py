"""Verbs: what operators do to jobs, and in which states jobs can be changed so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from rowlock.errors import InvalidOption
from rowlock.model.filter import ENDED, LIVE, STATES, Filter
from rowlock.model.names import shown
from rowlock.model.record import State

VerbName = Literal["retry", "cancel", "delete", "move", "reprioritise", "run_next"]

PARKED_FOR: Final = frozenset({"signal", "children"})
"""What parked workflows wait for that are stored as waiting; those that wait for a time are stored as ready."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: the states it can change, those it changes when the filter names none, and those it looks at then.

    Jobs that it looks at and does not change are passed over, and counted; so are live workflows that have begun, and
    children, if it `spares` them.
    """

    name: VerbName
    changes: frozenset[State]
    looks: frozenset[State]
    by_default: frozenset[State] | None = None  # None: all that it can change
    spares: bool = False

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

VERBS: Final[dict[VerbName, Verb]] = {
    # A cancelled job was cancelled on purpose: only a filter that names the state brings it back.
    "retry": Verb("retry", changes=ENDED, looks=frozenset({"failed", "cancelled"}), by_default=frozenset({"failed"})),
    "cancel": Verb("cancel", changes=LIVE, looks=LIVE),
    "delete": Verb("delete", changes=frozenset(STATES) - {"running"}, looks=frozenset(STATES), spares=True),
    "move": Verb("move", changes=LIVE - {"running"}, looks=LIVE),
    "reprioritise": Verb("reprioritise", changes=LIVE - {"running"}, looks=LIVE),
    "run_next": Verb("run_next", changes=frozenset({"ready"}), looks=LIVE),
}


def verb_named(name: str) -> Verb:
    """The verb of this name."""
    for verb in VERBS.values():
        if verb.name == name:
            return verb
    raise InvalidOption(f"verb {shown(name)} is none of {', '.join(get_args(VerbName))}")


def _listed(states: frozenset[State]) -> str:
    return " or ".join(state for state in STATES if state in states)
