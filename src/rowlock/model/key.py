"""Keys: one live job for each, and the other meanings of a key."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

from rowlock.errors import InvalidOption
from rowlock.model.names import check_key, shown

Taken = Literal["return", "skip", "raise", "replace", "debounce"]

_TAKEN: Final = get_args(Taken)
_LONGEST: Final = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Key:
    """A key, and what it means: `using(key=Key("report:7", period=timedelta(hours=1)))`.

    With a `period`, the key of a job that has succeeded is held until so long after its enqueue. `taken` says what
    happens when the key is held: "return" that job, "skip", "raise" KeyTaken, "replace" its arguments, or "debounce":
    replace them and put the job off by the call's delay, but no longer than `at_most` after its enqueue. These last two
    make a new job, which gets the key, if the one that holds it runs.
    """

    text: str
    _: KW_ONLY
    period: timedelta | None = None
    taken: Taken = "return"
    at_most: timedelta | None = None

    def __post_init__(self) -> None:
        check_key(self.text)
        if self.taken not in _TAKEN:
            raise InvalidOption(f"taken={shown(self.taken)} must be one of {', '.join(map(repr, _TAKEN))}")
        _check_span("period", self.period)
        _check_span("at_most", self.at_most)
        if self.period is not None and self.replaces:
            raise InvalidOption(
                f"Key(period=…, taken={self.taken!r}): a job that has ended cannot be given other arguments; leave "
                "period out, or use taken='return', 'skip' or 'raise'"
            )
        if self.taken == "debounce" and self.at_most is None:
            raise InvalidOption(
                "Key(taken='debounce') needs at_most=timedelta(…): without it, a job that is asked for often never runs"
            )
        if self.taken != "debounce" and self.at_most is not None:
            raise InvalidOption(f"Key(at_most=…) goes with taken='debounce', not {self.taken!r}; leave it out")

    @property
    def replaces(self) -> bool:
        """Whether a holder that does not run is given new arguments."""
        return self.taken in {"replace", "debounce"}

    def check_call(self, *, run_at: datetime | None, delay: timedelta | None) -> None:
        """Refuse a call that says too little, or too much, for its key."""
        if self.taken != "debounce":
            return
        if run_at is None and delay is None:
            raise InvalidOption("a key with taken='debounce' puts its job off: say by how much, using(key=…, delay=…)")
        if delay is not None and self.at_most is not None and delay > self.at_most:
            raise InvalidOption(
                f"delay={shown(delay)} is longer than its key's at_most={shown(self.at_most)}; use a shorter one, or a "
                "larger bound"
            )

    def check_workflow(self, name: str) -> None:
        """Refuse what the key of a workflow cannot mean: it is held for as long as its record is kept."""
        if self.period is None and not self.replaces:
            return
        said = "period=…" if self.period is not None else f"taken={self.taken!r}"
        raise InvalidOption(
            f"Key({said}) is for tasks, and {name!r} is a workflow: its key is held from its start until its record "
            "has left history; use taken='return', 'skip' or 'raise'"
        )


def _check_span(name: str, span: timedelta | None) -> None:
    if span is None:
        return
    if not isinstance(span, timedelta):
        raise InvalidOption(f"{name}={shown(span)} must be a timedelta; write timedelta(hours=…)")
    if not timedelta(0) < span <= _LONGEST:
        raise InvalidOption(f"{name}={shown(span)} must be more than zero and up to {_LONGEST.days} days")
