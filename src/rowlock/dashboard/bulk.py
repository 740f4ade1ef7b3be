"""Verbs for many jobs: which ones they mean, how they are carried out, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rowlock.app.jobs import Jobs
from rowlock.dashboard.wanted import Wanted, read_argument
from rowlock.model.formatting import count
from rowlock.model.verb import VerbName

# The verb of the library that does it.
ACTS: Final[Mapping[VerbName, Callable[..., Any]]] = {
    "retry": Jobs.aretry,
    "cancel": Jobs.acancel,
    "run_next": Jobs.arun_next,
    "move": Jobs.amove,
    "reprioritise": Jobs.areprioritise,
    "delete": Jobs.adelete,
}
# What became of one job, and of several.
_DID: Final[Mapping[VerbName, tuple[str, str]]] = {
    "retry": ("will run again", "will run again"),
    "cancel": ("is cancelled", "are cancelled"),
    "run_next": ("runs next", "run next"),
    "move": ("was moved", "were moved"),
    "reprioritise": ("has the new priority", "have the new priority"),
    "delete": ("is deleted", "are deleted"),
}


def in_words(wanted: Wanted) -> str:
    """Which jobs, in words; without values of arguments, which are not everybody's to see."""
    terms = [f"{term.name} {term.value}" for term in wanted.terms() if term.name != "argument"]
    names = [name for typed in wanted.arg for name in read_argument(typed)]
    terms += [f"argument {name}" for name in names]
    if wanted.state:
        terms.insert(0, " or ".join(wanted.state))
    return ", ".join(terms) or "every job"


def told(verb: VerbName, changed: int, passed_over: int) -> str:
    """What was done, as a sentence without its full stop: 3 jobs will run again; 1 was passed over."""
    one, several = _DID[verb]
    did = f"{count(changed, 'job')} {one if changed == 1 else several}" if changed else "no job was changed"
    if not passed_over:
        return did
    return f"{did}; {passed_over:,} {'was' if passed_over == 1 else 'were'} passed over"
