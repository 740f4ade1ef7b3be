"""Task specifications: what a decorator declares, what one call changes, and the handler behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rowlock.errors import InvalidOption
from rowlock.model.key import Key
from rowlock.model.names import (
    check_attempts,
    check_delay,
    check_key,
    check_priority,
    check_queue,
    check_run_at,
    check_tags,
    check_task,
    check_version,
    shown,
)
from rowlock.model.outcome import Cancelled, Ended, Failed, Succeeded
from rowlock.model.pause import Breaker
from rowlock.model.payload.arguments import Arguments, Result
from rowlock.model.retry import Retry

DEFAULT_QUEUE = "default"
MOST_KEPT = timedelta(days=400)


@dataclass(frozen=True, slots=True)
class Keep:
    """Retention: how long history keeps ended jobs, by how they ended."""

    succeeded: timedelta = timedelta(days=1)
    failed: timedelta = timedelta(days=30)
    cancelled: timedelta = timedelta(days=7)

    def __post_init__(self) -> None:
        for name in ("succeeded", "failed", "cancelled"):
            value = getattr(self, name)
            _check_span(name, value)
            if value is None or value > MOST_KEPT:
                raise InvalidOption(
                    f"Keep({name}={value!r}): history keeps at most {MOST_KEPT.days} days; "
                    "copy what must stay longer to a table of your own"
                )

    def after(self, outcome: Ended) -> timedelta:
        """The time for which a job that ended so is kept."""
        match outcome:
            case Succeeded():
                return self.succeeded
            case Failed():
                return self.failed
            case Cancelled():
                return self.cancelled

    @property
    def longest(self) -> timedelta:
        """The longest of the three."""
        return max(self.succeeded, self.failed, self.cancelled)


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as it is declared. With a `version` it is a workflow, and `retry` is for its steps.

    `attempts` is how many a job of it has: one if it is a workflow, for that is not retried as a whole. `fails_on` are
    the errors of its own code that a workflow fails of, and is undone for; any other one blocks it.
    """

    name: str
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    retry: Retry = field(default_factory=Retry)
    timeout: timedelta | None = None
    aliases: tuple[str, ...] = ()
    keep: Keep | None = None
    history: bool = True
    expires: timedelta | None = None
    breaker: Breaker | None = None
    version: int | None = None
    fails_on: tuple[type[BaseException], ...] = ()
    attempts: int = field(init=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.aliases):
            check_task(name)
        if self.version is not None:
            check_version(self.version)
        _check_retry(self.retry)
        _check_errors("fails_on", self.fails_on)
        object.__setattr__(self, "attempts", self.retry.attempts if self.version is None else 1)
        check_queue(self.queue)
        check_priority(self.priority)
        _check_span("timeout", self.timeout)
        if self.timeout == timedelta(0):
            raise InvalidOption("timeout=0 would end every attempt at once; leave it out for none")
        check_expires(self.expires)
        if self.breaker is not None and not isinstance(self.breaker, Breaker):
            raise InvalidOption(f"breaker={shown(self.breaker)} must be a Breaker; write breaker=Breaker(failures=20)")

    def allowed(self, options: Options) -> Options:
        """The options of a call, checked: a workflow takes no attempts, and fewer kinds of keys."""
        if self.version is None:
            return options
        if options.attempts is not None:
            raise InvalidOption(
                f"attempts={options.attempts} is for tasks, and {self.name!r} is a workflow: its steps are retried, "
                "each by its own policy; declare retry= with it, or call ctx.using(retry=…).step(…)"
            )
        if isinstance(options.key, Key):
            options.key.check_workflow(self.name)
        return options


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one call, where they differ from its task's."""

    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    key: str | Key | None = None
    tags: tuple[str, ...] = ()
    attempts: int | None = None
    expires: timedelta | None = None
    connection: object | None = None

    def __post_init__(self) -> None:
        if self.queue is not None:
            check_queue(self.queue)
        if self.priority is not None:
            check_priority(self.priority)
        if self.run_at is not None and self.delay is not None:
            raise InvalidOption("give run_at or delay, not both")
        if self.run_at is not None:
            check_run_at(self.run_at)
        if isinstance(self.key, Key):
            self.key.check_call(run_at=self.run_at, delay=self.delay)
        elif self.key is not None:
            check_key(self.key)
        if self.attempts is not None:
            check_attempts(self.attempts)
        check_tags(self.tags)
        if self.delay is not None:
            check_delay(self.delay)
        check_expires(self.expires)


Carry = Callable[[dict[str, Any]], dict[str, Any]]
"""A migration of a workflow's state from one version to a later one."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A task's function, its specification, and the codecs of its arguments and result.

    `carries` are the migrations that make the state of a workflow of an earlier version into this one's, in order.
    """

    spec: TaskSpec
    function: Callable[..., Any]
    is_async: bool
    arguments: Arguments
    result: Result
    carries: tuple[Carry, ...] = ()

    @property
    def version(self) -> int | None:
        """The version of a workflow's code; None: it is not a workflow."""
        return self.spec.version

    @property
    def is_workflow(self) -> bool:
        """Whether it is the code of a workflow, which records its steps."""
        return self.spec.version is not None


def check_expires(expires: timedelta | None) -> timedelta | None:
    """How long after its run_at a job is worth starting: more than zero, or None forever."""
    _check_span("expires", expires)
    if expires == timedelta(0):
        raise InvalidOption("expires=0 would end every job unrun; leave it out for never")
    return expires


def _check_retry(retry: object) -> None:
    if not isinstance(retry, Retry):
        attempts = retry if type(retry) is int else 3
        raise InvalidOption(f"retry={shown(retry)} must be a Retry; write retry=Retry(attempts={attempts})")


def _check_errors(name: str, errors: object) -> None:
    kinds = errors if isinstance(errors, tuple) else (errors,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InvalidOption(f"{name}={shown(errors)} must be a class of errors, or several; write {name}=[ValueError]")


def _check_span(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, timedelta) or value < timedelta(0)):
        raise InvalidOption(f"{name}={value!r} must be a timedelta of zero or more; write timedelta(seconds=…)")


AS_DECLARED = Options()
