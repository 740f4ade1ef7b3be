"""Errors: everything that Rowlock raises on purpose.

    RowlockError
    ├── NotConfigured        no database was named, or its address makes no sense
    ├── SchemaMissing        the database has no Rowlock schema, or one this version cannot use
    ├── EmbeddedError        the embedded PostgreSQL cannot be found, made or started
    ├── TaskError            a task is declared wrongly: name taken, not importable, bad option
    │   └── UnknownTask      no task of that name is registered in this process
    ├── InvalidArguments     the arguments do not fit the task, or would not survive the trip (also a TypeError)
    │   └── PayloadTooLarge  they fit, but their JSON is over the limit
    ├── InvalidOption        a value given to using(…), a policy or a worker is out of range (also a ValueError)
    ├── WrongConnection      connection= is of a kind, or in a state, that cannot carry the job
    ├── Locked               a row, or for a migration a table, is locked by another transaction for too long
    ├── KeyTaken             the key is held: by a job of another task, or where that was not to be
    ├── ScheduleError        a schedule cannot be added, changed or removed so: its name is taken, its code declares it
    │   └── ScheduleNotFound there is no schedule of that name
    ├── WorkflowError        what goes wrong with workflows: too many steps, a name that is none
    │   ├── StepFailed       a step has failed for good
    │   ├── SignalTimeout    a signal has not come in time (also a TimeoutError)
    │   ├── ChildFailed      a child has failed for good
    │   ├── ChildCancelled   a child was cancelled
    │   ├── NotAWorkflow     the job is of a plain task: it takes no signals
    │   └── SignalRefused    the workflow has ended, or is being cancelled: it takes no more signals
    ├── JobNotFound          there is no such job: never committed, rolled back or deleted
    ├── JobFailed            the job whose result was asked for has failed for good
    ├── JobCancelled         the job whose result was asked for was cancelled
    ├── NoResult             the job has ended and left no result
    └── ResultTimeout        the job has not ended within the time given (also a TimeoutError)

    Interruption (BaseException)   raised in a handler to end its attempt in another way than return or error
    ├── Snooze               run again later; no attempt is spent
    ├── RetryAfter           run again later; an attempt is spent
    ├── Cancel               end the job as cancelled
    ├── WorkflowChanged      raised by a workflow's context: the code does not match what the workflow remembers
    └── LeaseLost            raised by current_job()'s verbs: this attempt does not own its job any more

A handler may as well return a Snooze, a RetryAfter or a Cancel. In an exception group the first of them counts, unless
another error is in the group.

Interruptions derive from BaseException so that a handler's own ``except Exception`` cannot swallow them.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import UUID

_LONGEST_DELAY = timedelta(days=36_500)


class RowlockError(Exception):
    """The root of every error Rowlock raises on purpose."""


class NotConfigured(RowlockError):
    """No database was named, or its address makes no sense."""


class SchemaMissing(RowlockError):
    """The database has no Rowlock schema, or one that this version cannot use."""


class EmbeddedError(RowlockError):
    """The embedded PostgreSQL cannot be found, made or started."""


class TaskError(RowlockError):
    """A task is declared wrongly."""


class UnknownTask(TaskError):
    """No task of that name is registered in this process."""


class InvalidArguments(RowlockError, TypeError):
    """The arguments do not fit the task, or would not reach its handler unchanged.

    ``path`` is where in the arguments the fault lies, as a JSON path: ``$.order.lines[3]``.
    """

    def __init__(self, message: str, *, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


class PayloadTooLarge(InvalidArguments):
    """The JSON of the arguments is over the limit."""


class InvalidOption(RowlockError, ValueError):
    """A value given to ``using(…)``, to a policy or to a worker is out of range."""


class WrongConnection(RowlockError):
    """``connection=`` is of a kind, or in a state, that cannot carry the job."""


class Locked(RowlockError):
    """A row that the call waits for is locked by another transaction, which has not ended within the deadline.

    For a migration, a table: others have kept it locked for a minute.
    """


class KeyTaken(RowlockError):
    """The key is held by ``job`` of ``task``: another task's, or the same one's where ``taken="raise"`` was said."""

    def __init__(self, key: str, job: UUID, task: str, message: str) -> None:
        super().__init__(key, job, task, message)
        self.key = key
        self.job = job
        self.task = task

    def __str__(self) -> str:
        return str(self.args[-1])


class ScheduleError(RowlockError):
    """A schedule cannot be added, changed or removed as asked: its name is taken, or live workers declare it."""

    def __init__(self, schedule: str, message: str) -> None:
        super().__init__(schedule, message)
        self.schedule = schedule

    def __str__(self) -> str:
        return str(self.args[1])


class ScheduleNotFound(ScheduleError):
    """There is no schedule of that name."""


class WorkflowError(RowlockError):
    """The root of what goes wrong with workflows."""


class NotAWorkflow(WorkflowError):
    """The job is of a plain task: nothing in it waits for signals."""

    def __init__(self, job: UUID, message: str) -> None:
        super().__init__(job, message)
        self.job = job

    def __str__(self) -> str:
        return str(self.args[1])


class SignalRefused(WorkflowError):
    """The workflow takes no more signals: `state` says how it has ended, or that it is ``cancelling``."""

    def __init__(self, job: UUID, state: str, signal: str) -> None:
        super().__init__(job, state, signal)
        self.job = job
        self.state = state
        self.signal = signal

    def __str__(self) -> str:
        stands = "is being cancelled" if self.state == "cancelling" else f"has ended ({self.state})"
        return f"workflow {self.job} {stands} and takes no more signals; {self.signal!r} was not stored"


class JobNotFound(RowlockError):
    """There is no such job: its transaction was never committed or was rolled back, or somebody deleted it.

    ``job`` is None where it was asked for by its key.
    """

    def __init__(self, job: UUID | None, message: str) -> None:
        super().__init__(job, message)
        self.job = job

    def __str__(self) -> str:
        return str(self.args[1])


class JobFailed(RowlockError):
    """The job has failed for good: `reason` says how, the rest what went wrong in its last attempt, on its worker.

    ``attempts`` is how many were spent. The worker's traceback is also a note, so that Python prints it.
    """

    def __init__(
        self,
        job: UUID,
        task: str,
        *,
        reason: str,
        error_type: str,
        message: str,
        remote_traceback: str,
        attempts: int,
    ) -> None:
        spent = f"{attempts} attempt{'' if attempts == 1 else 's'} spent"
        super().__init__(f"job {job} of {task} failed ({reason}, {spent}): {error_type}: {message}")
        self.job = job
        self.task = task
        self.reason = reason
        self.error_type = error_type
        self.message = message
        self.remote_traceback = remote_traceback
        self.attempts = attempts
        if remote_traceback:
            self.add_note(f"on its worker:\n{remote_traceback.rstrip()}")

    def __reduce__(self) -> tuple[partial[JobFailed], tuple[()]]:
        facts = {name: value for name, value in vars(self).items() if name != "__notes__"}
        return partial(JobFailed, **facts), ()


class JobCancelled(RowlockError):
    """The job was cancelled, for ``reason``."""

    def __init__(self, job: UUID, task: str, reason: str) -> None:
        super().__init__(job, task, reason)
        self.job = job
        self.task = task
        self.reason = reason

    def __str__(self) -> str:
        return f"job {self.job} of {self.task} was cancelled: {self.reason}"


class StepFailed(WorkflowError):
    """A step has failed for good: ``error_type`` and ``message`` are its last error's, in every attempt the same."""

    def __init__(self, step: str, *, error_type: str, message: str, remote_traceback: str, attempts: int) -> None:
        tries = f"{attempts} attempt{'' if attempts == 1 else 's'}"
        super().__init__(f"step {step!r} failed ({tries}): {error_type}: {message}")
        self.step = step
        self.error_type = error_type
        self.message = message
        self.remote_traceback = remote_traceback
        self.attempts = attempts
        if remote_traceback:
            self.add_note(f"in its last attempt:\n{remote_traceback.rstrip()}")

    def __reduce__(self) -> tuple[partial[StepFailed], tuple[()]]:
        facts = {name: value for name, value in vars(self).items() if name != "__notes__"}
        return partial(StepFailed, **facts), ()


class SignalTimeout(WorkflowError, TimeoutError):
    """No signal of that name has come within the time given; one that comes later is there for the next wait.

    ``step`` is the key of that wait.
    """

    def __init__(self, signal: str, *, step: str) -> None:
        super().__init__(signal)
        self.signal = signal
        self.step = step

    def __reduce__(self) -> tuple[partial[SignalTimeout], tuple[()]]:
        return partial(SignalTimeout, self.signal, step=self.step), ()

    def __str__(self) -> str:
        return f"no signal {self.signal!r} has come in time"


class ChildFailed(WorkflowError):
    """A child of a workflow has failed for good: ``error_type`` and ``message`` are its last error's.

    ``step`` is the key by which its workflow remembers it.
    """

    def __init__(
        self, job: UUID, task: str, *, step: str, reason: str, error_type: str, message: str, remote_traceback: str
    ) -> None:
        super().__init__(f"child {job} of {task} failed ({reason}): {error_type}: {message}")
        self.job = job
        self.task = task
        self.step = step
        self.reason = reason
        self.error_type = error_type
        self.message = message
        self.remote_traceback = remote_traceback
        if remote_traceback:
            self.add_note(f"on its worker:\n{remote_traceback.rstrip()}")

    def __reduce__(self) -> tuple[partial[ChildFailed], tuple[()]]:
        facts = {name: value for name, value in vars(self).items() if name != "__notes__"}
        return partial(ChildFailed, **facts), ()


class ChildCancelled(WorkflowError):
    """A child of a workflow was cancelled, for ``reason``; ``step`` is the key by which its workflow remembers it."""

    def __init__(self, job: UUID, task: str, reason: str, step: str) -> None:
        super().__init__(job, task, reason, step)
        self.job = job
        self.task = task
        self.reason = reason
        self.step = step

    def __str__(self) -> str:
        return f"child {self.job} of {self.task} was cancelled: {self.reason}"


class NoResult(RowlockError):
    """The job has ended and left no result: its task keeps no history, or its time there is over."""

    def __init__(self, job: UUID, message: str) -> None:
        super().__init__(job, message)
        self.job = job

    def __str__(self) -> str:
        return str(self.args[1])


class ResultTimeout(RowlockError, TimeoutError):
    """The job has not ended within the time given; it goes on, and its result can be waited for again."""

    def __init__(self, job: UUID, task: str, timeout: timedelta) -> None:
        super().__init__(f"job {job} of {task} has not ended within {timeout.total_seconds():g} s")
        self.job = job
        self.task = task
        self.timeout = timeout

    def __reduce__(self) -> tuple[type[ResultTimeout], tuple[UUID, str, timedelta]]:
        return ResultTimeout, (self.job, self.task, self.timeout)  # three args would be an OSError's errno and so on


class Interruption(BaseException):
    """What is raised in a handler to end its attempt in another way than return or error."""


class Snooze(Interruption):
    """Run this job again after ``delay``, a hundred years at most; no attempt is spent."""

    def __init__(self, delay: timedelta) -> None:
        super().__init__(delay)
        self.delay = _checked(delay)


class RetryAfter(Interruption):
    """Run this job again after ``delay``, whatever its retry policy says; an attempt is spent.

    ``reason`` is stored as text, as is that of ``Cancel``: 4 KB of it.
    """

    def __init__(self, delay: timedelta, reason: str = "") -> None:
        super().__init__(delay, reason)
        self.delay = _checked(delay)
        self.reason = reason


class Cancel(Interruption):
    """End this job as cancelled, with ``reason``, which is stored as text: an exception as its type and message."""

    def __init__(self, reason: object = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class WorkflowChanged(Interruption):
    """The code of a workflow does not match what it remembers: the job waits for code that does; nothing is written.

    The message names the call, what the code says there and what the record has.
    """


class LeaseLost(Interruption):
    """This attempt does not own its job any more: the job is, or will be, somebody else's. Stop, and change nothing."""

    def __init__(self, job: UUID, message: str) -> None:
        super().__init__(job, message)
        self.job = job

    def __str__(self) -> str:
        return str(self.args[1])


def _checked(delay: timedelta) -> timedelta:
    if not isinstance(delay, timedelta):
        raise InvalidOption(f"delay must be a timedelta, not {type(delay).__name__}; write timedelta(seconds=…)")
    if delay > _LONGEST_DELAY:  # what PostgreSQL could not add to the time of day
        raise InvalidOption(f"delay={delay} is too long; use {_LONGEST_DELAY.days:,} days at most")
    return max(delay, timedelta(0))
