"""Roles: the rights of each kind of client, and the SQL that grants them.

The roles are groups that nobody logs in as, named after the schema: `grant rowlock_worker to` your workers' login.
What is granted is what the statements of such a client need, column by column, and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from rowlock.store.query import Query, array, first, qualified

Privilege = Literal["select", "insert", "update", "delete"]
ALL: tuple[str, ...] = ("*",)
"""Every column."""

# By table and privilege, the columns.
Rights = Mapping[str, Mapping[Privilege, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of client: what it may read and write, what it may call, and which kinds of events it may add."""

    name: str
    rights: Rights
    functions: tuple[str, ...]
    events: tuple[str, ...] = field(default=())

    def full_name(self, schema: str) -> str:
        """Its name in the server, where roles of all databases and schemas live together."""
        return f"{schema}_{self.name}"


def _with(*parts: Rights) -> Rights:
    """All of these rights."""
    whole: dict[str, dict[Privilege, tuple[str, ...]]] = {}
    for part in parts:
        for table, rights in part.items():
            for privilege, columns in rights.items():
                before = whole.setdefault(table, {}).get(privilege, ())
                whole[table][privilege] = ALL if ALL in (before, columns) else tuple(dict.fromkeys(before + columns))
    return whole


# A parent that is none of the job's only costs the workflow a look: what its children came to stands in its steps.
_NEW = (
    *("id", "queue", "task", "priority", "attempts", "run_at", "created_at", "expires_at", "args", "tags", "key"),
    *("version", "parent"),
)

_ENQUEUE: Rights = {
    "migrations": {"select": ALL},
    "jobs": {"select": ("id", "queue", "run_at"), "insert": _NEW},
    "keys": {"select": ALL, "insert": ALL},
    "parked": {"select": ("queue",)},  # a view: it has its owner's rights, and reads for those who ask
}

_RESULTS: Rights = {
    "migrations": {"select": ALL},
    "jobs": {"select": ("id",)},
    "history": {"select": ("id", "state", "reason", "failures", "result", "errors")},
    "waiters": {"select": ("job", "listener"), "insert": ALL, "delete": ALL},
}

# A job, but for what users' data flows into (args, result, errors) and the proof of a claim.
_OUTLINE = (
    *("id", "queue", "task", "state", "priority", "failures", "crashes", "claims", "attempts"),
    *("run_at", "created_at", "started_at", "worker", "key", "tags", "reason", "progress", "version", "parent"),
)

# A workflow and its steps in the views, but for users' data: a view has its owner's rights, and shows all it is asked.
_WORKFLOW = (
    *("id", "key", "workflow", "version", "state", "cancelling", "current_step", "waits_for", "reason", "parent"),
    *("queue", "priority", "created_at", "started_at", "ended_at", "updated_at"),
)
_STEP = (
    *("workflow_id", "step_key", "name", "kind", "state", "attempts", "until", "child", "started_at", "ended_at"),
    *("duration", "position"),
)

# A schedule, but for its arguments, and for what was declared and edited, where they are too.
_SCHEDULE = (
    *("name", "cron", "tz", "every", "task", "queue", "priority", "attempts", "version", "expires", "tags", "jitter"),
    *("overlap", "catch_up", "at_boot", "is_declared", "is_edited", "paused_at", "paused_until", "paused_by"),
    *("paused_why", "next_at", "last_at", "held", "booted_at", "jobs", "created_at"),
)

# What code says of a schedule, and what comes of firing it. A pause that is over is ended by `end_pauses`.
_DECLARED = (
    *("name", "cron", "tz", "every", "task", "args", "queue", "priority", "attempts", "version", "expires", "tags"),
    *("jitter", "overlap", "catch_up", "at_boot", "declared", "next_at", "created_at"),
)
_FIRED = ("last_at", "held", "booted_at", "jobs")

_VIEW: Rights = {
    "migrations": {"select": ALL},
    # By its xmax one finds who has a job locked.
    "jobs": {"select": (*_OUTLINE, "xmax", "expires_at", "waits_for", "wakes_at", "cancel_at", "begun")},
    "history": {"select": (*_OUTLINE, "ended_at", "expires_on")},
    "queues": {"select": ALL},
    "pauses": {"select": ALL},
    "duties": {"select": ALL},
    "workers": {"select": ALL},
    "minutes": {"select": ALL},
    "events": {"select": ALL},
    "schedules": {"select": _SCHEDULE},
    "firings": {"select": ALL},
    "workflows": {"select": _WORKFLOW},
    "workflow_steps": {"select": _STEP},
    "approvals": {"select": ALL},
    "signals": {"select": ("id", "job", "number", "name", "key", "sent_at", "taken_at")},
}

# Who may only add events cannot date them, and nobody but the owner can change or remove any.
_LOG: Rights = {"events": {"insert": ("kind", "job", "actor", "details")}}

# To lock a row takes the right to change something of it.
_DUTY: dict[Privilege, tuple[str, ...]] = {"select": ALL, "update": ("begun_at", "done")}

_WORK: Rights = {
    "jobs": {"select": ALL, "update": ALL, "delete": ALL},
    "history": {"insert": ALL},
    "keys": {"update": ("until",), "delete": ALL},
    "queues": {"select": ALL},
    "pauses": {"select": ALL},
    "breakers": {"select": ALL, "insert": ALL, "update": ALL, "delete": ALL},
    # What an operator has edited is not a worker's to change.
    "schedules": {"select": ALL, "insert": _DECLARED, "update": (*_DECLARED, *_FIRED)},
    "firings": {"select": ALL, "insert": ALL, "delete": ALL},
    "steps": {
        "select": ALL,
        "insert": ALL,
        "update": ("state", "value", "error", "attempts", "until", "started_at", "ended_at"),
        "delete": ALL,
    },
    "signals": {"select": ALL, "update": ("taken_at",), "delete": ALL},
    "workers": {"select": ALL, "insert": ALL, "update": ALL, "delete": ALL},
    "present": {"select": ALL, "insert": ALL, "update": ALL, "delete": ALL},
    "duties": _DUTY,
    "looked_at": {"select": ALL, "update": ALL},
    "parkings": {"select": ALL, "insert": ALL, "delete": ALL},
    "parking_number": {"select": ALL, "update": ALL},
    "waiters": {"select": ALL, "delete": ALL},
    "minutes": {"select": ALL, "insert": ALL, "update": ALL, "delete": ALL},
    "events": {"select": ("kind", "at", "job", "details")},
}

_OPERATE: Rights = {
    # Whose a job is, and of which task, is not an operator's to change.
    "jobs": {
        "select": ALL,
        "insert": ("claims", "started_at", "worker", "errors", "version", "wakes", "workflow_state"),
        "update": ("queue", "priority", "run_at", "state", "waits_for", "reason", "cancel_at", "wakes_at", "args"),
        "delete": ALL,
    },
    # No row of history is changed, but to lock one takes the right to change something of it.
    "history": {"select": ALL, "insert": ALL, "update": ("progress",), "delete": ALL},
    "keys": {"update": ("until",), "delete": ALL},
    "queues": {"insert": ALL, "update": ALL, "delete": ALL},
    "duties": _DUTY,
    "pauses": {"insert": ALL, "update": ALL, "delete": ALL},
    "breakers": {"select": ("task",), "delete": ALL},
    "schedules": {"select": ALL, "insert": ALL, "update": ALL, "delete": ALL},
    "firings": {"insert": ALL},
    "waiters": {"select": ("job", "listener")},
    "workflows": {"select": ALL},
    "workflow_steps": {"select": ALL},
    # What a workflow remembers is restored and copied, and never changed.
    "steps": {"select": ALL, "insert": ALL},
    "signals": {"select": ALL, "insert": ALL},
}

_CLIENT = (
    *("now", "channel", "notifies", "notify", "uuid7", "enqueue", "put", "make_way", "sent_before", "take_back"),
    *("signal", "send_signal"),
)

_PARTS = ("make_part", "drop_part", "event_expiry", "clear_spare_events")

ROLES: tuple[Role, ...] = (
    Role("enqueue", _ENQUEUE, _CLIENT),
    Role("results", _RESULTS, ("now",)),
    Role(
        "worker",
        _with(_ENQUEUE, _WORK, _LOG),
        (*_CLIENT, "shown_state", "token", "folded", "add_error", *_PARTS, "trip", "end_pauses"),
        events=("rescued", "poisoned", "replaced", "abandoned"),
    ),
    Role("viewer", _VIEW, ("now", "shown_state", "unfolded")),
    Role(
        "operator",
        _with(_ENQUEUE, _VIEW, _OPERATE, _LOG),
        (*_CLIENT, "shown_state", "cancel", "make_part", "event_expiry", "unfolded", "branch", "resumed", "terminate"),
        events=(
            *("retried", "cancelled", "deleted", "moved", "reprioritised", "run_next", "paused", "resumed"),
            *("added", "edited", "removed", "run_now", "forked", "enqueued", "signalled"),
            *("logged_in", "login_failed", "logged_out"),
        ),
    ),
)


KINDS_OF_FUNCTIONS = ("pause_over", "rewritten", "terminated")
"""Kinds of events that nobody may add: functions with their owner's rights do."""


def names(schema: str) -> list[str]:
    """The roles of a schema."""
    return [role.full_name(schema) for role in ROLES]


def missing(schema: str) -> Query[str]:
    """Those that the server does not have."""
    return Query("role_missing", {"roles": array(names(schema))}, first)


def creation(roles: Iterable[str]) -> str:
    """The SQL that makes roles; it takes CREATEROLE, which the owner of the tables need not have."""
    return "\n".join(f'create role "{role}" nologin;' for role in roles)


def grants(schema: str) -> str:
    """The SQL that gives every role of a schema its rights, and takes away any other that it has there."""
    everyone = ", ".join(f'"{name}"' for name in names(schema))
    parts = [
        f'revoke all on schema "{schema}" from {everyone};',
        f'revoke all on all tables in schema "{schema}" from {everyone};',
        f'revoke all on all sequences in schema "{schema}" from {everyone};',
        f'revoke all on all functions in schema "{schema}" from {everyone};',
        f'grant usage on schema "{schema}" to {everyone};',
    ]
    for role in ROLES:
        parts += _role_grants(role, schema)
    return "\n".join([*parts, *_event_policies(schema)])


def _role_grants(role: Role, schema: str) -> Iterable[str]:
    for table, rights in role.rights.items():
        said = ", ".join(
            privilege if columns == ALL else f"{privilege} ({', '.join(columns)})"
            for privilege, columns in rights.items()
        )
        yield f'grant {said} on table {qualified(schema, table)} to "{role.full_name(schema)}";'
    functions = ", ".join(qualified(schema, function) for function in role.functions)
    yield f'grant execute on function {functions} to "{role.full_name(schema)}";'


def _event_policies(schema: str) -> Iterable[str]:
    """Who adds events adds its own kinds, so that no worker can make up an operator's deed; nor does one read of them.

    They wait for nobody for long: events are being written meanwhile.
    """
    events = qualified(schema, "events")
    yield "set local lock_timeout = '10s';"
    yield f"alter table {events} enable row level security;"
    for role in ROLES:
        name = role.full_name(schema)
        rights = role.rights.get("events", {})
        kinds = ", ".join(f"'{kind}'" for kind in role.events)
        own = f"kind in ({kinds})"
        if "select" in rights:
            seen = "true" if rights["select"] == ALL else own
            yield f'drop policy if exists "{name}_reads" on {events};'
            yield f'create policy "{name}_reads" on {events} for select to "{name}" using ({seen});'
        if "insert" in rights:
            yield f'drop policy if exists "{name}_adds" on {events};'
            yield f'create policy "{name}_adds" on {events} for insert to "{name}" with check ({own});'
