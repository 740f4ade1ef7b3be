"""Webhooks: signed signals from outside, each stored once.

The convention is Standard Webhooks, so that senders use a library of theirs: the headers `webhook-id`,
`webhook-timestamp` (seconds since 1970) and `webhook-signature` (`v1,BASE64`, several parted by spaces). A signature is
an HMAC-SHA256 over `ID.TIMESTAMP.BODY`, and a secret is written `whsec_BASE64`.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import ClassVar, Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from rowlock.app.app import Rowlock
from rowlock.errors import InvalidArguments, InvalidOption, JobNotFound, RowlockError, WorkflowError
from rowlock.model.filter import Filter
from rowlock.model.formatting import span
from rowlock.model.names import shown
from rowlock.model.record import JobRecord
from rowlock.store import explain
from rowlock.store.find import pages, windows
from rowlock.store.query import Conversation, alone

PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24  # of a secret, as the convention has it
_SECRET: Final = re.compile(r"(?:(?P<name>[\w.-]{1,100})=)?(?P<secret>whsec_[^|]*)(?P<scope>(?:\|[^|]+)*)", re.DOTALL)
_ADVICE: Final = (
    "make one: python -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\""
)


@dataclass(frozen=True, slots=True)
class WebhookSender:
    """A sender: what the audit calls it, its key, and its scope: patterns for workflow and signal, none for any."""

    name: str
    key: bytes = field(repr=False)
    scope: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, said: object, number: int, source: str) -> WebhookSender:
        """A sender as `NAME=whsec_BASE64|WORKFLOW:SIGNAL|…`; without a scope any signal.

        What is wrong with it is said without a word of the secret.
        """
        place = f"secret {number} of {source}"
        match = _SECRET.fullmatch(said) if isinstance(said, str) else None
        if match is None:
            raise InvalidOption(f"{place} does not begin with {PREFIX}, or NAME={PREFIX}; {_ADVICE}")
        scope = tuple(_pair(one, place) for one in match["scope"].split("|")[1:])
        return cls(f"webhook {match['name'] or f'secret {number}'}", _key(match["secret"], place), scope)

    def may_send(self, signal: str) -> bool:
        """Whether it may send this signal to any workflow at all."""
        return not self.scope or any(fnmatchcase(signal, pattern) for _, pattern in self.scope)

    def may_send_to(self, workflow: str, signal: str) -> bool:
        """Whether it may send this signal to this workflow."""
        return not self.scope or any(
            fnmatchcase(workflow, to) and fnmatchcase(signal, pattern) for to, pattern in self.scope
        )

    def may_send_to_all(self, signal: str) -> bool:
        """Whether it may send this signal to every workflow."""
        return not self.scope or any(to == "*" and fnmatchcase(signal, pattern) for to, pattern in self.scope)


def _pair(said: str, place: str) -> tuple[str, str]:
    workflow, colon, signal = said.rpartition(":")
    if not colon or not workflow or not signal:
        raise InvalidOption(
            f"the scope {shown(said)} of {place} is not WORKFLOW:SIGNAL, such as checkout:paid or *:paid"
        )
    return workflow, signal


def _key(secret: str, place: str) -> bytes:
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise InvalidOption(f"{place} is not base64 after {PREFIX}; {_ADVICE}") from None
    if len(key) < _LEAST_BYTES:
        raise InvalidOption(f"{place} has {len(key)} bytes, and needs {_LEAST_BYTES} at least; {_ADVICE}")
    return key


MAX_BODY: Final = 1_000_000
TOLERANCE: Final = timedelta(minutes=5)
"""How far the clocks of sender and receiver may be apart, and how long a delivery may be on its way."""

log = logging.getLogger("rowlock.dashboard")

_VARIABLE: Final = "ROWLOCK_WEBHOOK_SECRETS"
# No full stop: with one, the same signed text could be read as another id with another body.
_ID: Final = re.compile(r"[!-\-/-~]{1,200}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,11}")
_JOB_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MOST_SIGNATURES: Final = 20
_FORM: Final = 'send {"to": ID or KEY, "signal": NAME, "payload": …}'


class DeliveryRefused(RowlockError):
    """A delivery that nobody will store; `status` is what HTTP calls it."""

    status: ClassVar[int] = 400


class MalformedDelivery(DeliveryRefused):
    """Its headers or its body are not as they must be."""


class DeliveryTooLarge(DeliveryRefused):
    """Its body is over the limit."""

    status = 413


class UntimelyDelivery(DeliveryRefused):
    """It was signed too long ago, or in the future by the clock here."""

    status = 401


class UnknownSignature(DeliveryRefused):
    """No secret of ours has signed it."""

    status = 401


class OutOfScope(DeliveryRefused):
    """Its secret is good for other signals, or for other workflows."""

    status = 403


class UnknownWorkflow(DeliveryRefused):
    """Its workflow does not exist."""

    status = 404


@dataclass(frozen=True, slots=True)
class Delivery:
    """A signal that somebody with a secret of ours has sent: `id` is the sender's, the same when it is sent again.

    `senders` have signed it and may send this signal, each to the workflows of its scope.
    """

    id: str
    sent_at: datetime
    to: str
    signal: str
    senders: tuple[WebhookSender, ...] = field(compare=False)
    payload: JsonValue = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The response to a sender: an HTTP status and a sentence."""

    status: int
    says: str


class Webhooks:
    """The secrets that senders sign with, each as `NAME=whsec_BASE64|WORKFLOW:SIGNAL|…`: see WebhookSender.

    To change a secret, have both for a while: the new one here, then at the sender, and then take the old one away.
    """

    def __init__(self, secrets: Sequence[str], *, said: str = "webhooks=") -> None:
        if isinstance(secrets, str):
            raise InvalidOption(f"{said} is one str; write a list of secrets")
        self._senders = tuple(
            WebhookSender.read(secret, number, said) for number, secret in enumerate(secrets, start=1)
        )
        for number, sender in enumerate(self._senders, start=1):
            if not sender.scope:
                log.warning(
                    "secret %d of %s may send any signal to any workflow; add a scope, such as |checkout:paid, or |*:*",
                    number,
                    said,
                )

    @classmethod
    def find(cls, given: Sequence[str] | None, environment: Mapping[str, str] = os.environ) -> Webhooks | None:
        """With the secrets given, else with those in $ROWLOCK_WEBHOOK_SECRETS, parted by spaces; None without any."""
        if given is not None:
            return cls(given) if given else None
        secrets = environment.get(_VARIABLE, "").split()
        return cls(secrets, said=f"${_VARIABLE}") if secrets else None

    def __repr__(self) -> str:
        return f"<Webhooks: {len(self._senders)} secrets>"

    def verify(self, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Delivery:
        """What was sent, if one of our secrets has signed it within five minutes of `now`; DeliveryRefused if not.

        `now` is of the receiver's own clock: the database's is better, but who is nobody yet shall not reach it.
        """
        if len(body) > MAX_BODY:
            raise DeliveryTooLarge(f"the body has {len(body):,} bytes, and {MAX_BODY:,} are allowed; send a reference")
        delivery_id, timestamp, signatures = _read(headers)
        sent_at = datetime.fromtimestamp(int(timestamp), UTC)
        if abs(now - sent_at) > TOLERANCE:
            when = "ago" if sent_at < now else "from now, by the clock here"
            raise UntimelyDelivery(
                f"it was signed {span(now - sent_at)} {when}, and {span(TOLERANCE)} are allowed; check the clocks, and "
                f"sign again what is sent again"
            )
        senders = self._signers(f"{delivery_id}.{timestamp}.".encode() + body, signatures)
        if not senders:
            raise UnknownSignature(
                "no signature in webhook-signature is by a secret known here; sign ID.TIMESTAMP.BODY, the body as sent"
            )
        sent = _parse(body)
        # Several have signed it while a secret is changed, and where entries share a key: each scope counts.
        may = tuple(one for one in senders if one.may_send(sent.signal))
        if not may:
            raise OutOfScope(
                f"this secret may not send the signal {shown(sent.signal)}; its scope is set where the dashboard runs"
            )
        return Delivery(delivery_id, sent_at, sent.to, sent.signal, may, sent.payload)

    def _signers(self, content: bytes, signatures: Sequence[str]) -> list[WebhookSender]:
        # Each is compared with each, however soon two are the same: how long it takes tells nobody anything.
        same = [
            (sender, hmac.compare_digest(b64encode(hmac.digest(sender.key, content, "sha256")), other.encode()))
            for sender in self._senders
            for other in signatures
        ]
        return [sender for sender, is_same in same if is_same]


async def deliver(app: Rowlock, delivery: Delivery) -> bool:
    """Store the signal of a delivery. True: it is stored and committed. False: this delivery was stored before.

    Its id is the signal's key, so nothing else need remember it: one statement stores both, under the lock of the
    workflow's row, and the key is kept as long as the record of the workflow, also when that has ended or is retried.
    To another workflow it cannot be sent, for whom it is to is signed. (But if that is a key, and the record of the
    workflow that had it is deleted, and another is started with it, all in the five minutes that a signature holds,
    then the other is told. Whoever does such things sends to ids.)

    What `app.signal` refuses is refused: JobNotFound, NotAWorkflow, SignalRefused, InvalidOption, InvalidArguments.
    """
    with app.within(None):  # on a connection of ours: when this returns, it is committed
        to, sender = await _permitted(app, delivery)
        return await app.asignal(to, delivery.signal, delivery.payload, key=f"webhook:{delivery.id}", by=sender.name)


async def _permitted(app: Rowlock, delivery: Delivery) -> tuple[UUID | str, WebhookSender]:
    """The workflow to send the signal to, and a sender that may; OutOfScope if none of them may.

    A scope is compared with the workflow that the key names now; the signal goes to that one's id, for by the time it
    is sent another workflow may have the key.
    """
    for sender in delivery.senders:
        if sender.may_send_to_all(delivery.signal):
            return delivery.to, sender
    record = await app.database.aconverse(lambda: _find(delivery.to), atomic=False)
    if record is None:
        raise UnknownWorkflow(f"there is no workflow {shown(delivery.to)}; send to its id or its key")
    for sender in delivery.senders:
        if sender.may_send_to(record.task, delivery.signal):
            return record.id, sender
    raise OutOfScope(f"this secret may not send {shown(delivery.signal)} to the workflow {record.task}")


def _find(to: str) -> Conversation[JobRecord | None]:
    """The job of that id or key; only what is written as PostgreSQL writes ids is an id, as for `app.signal`."""
    if _JOB_ID.fullmatch(to):
        job = UUID(to)
    else:
        held = yield from alone(explain.holder(to))
        if not held:
            return None
        job = UUID(str(held[0].job))
    found = yield from pages.page(Filter(ids=[job]), limit=1, before=None, looks=windows.BRIEF)
    return found.records[0] if found.records else None


async def receive(
    app: Rowlock, webhooks: Webhooks, *, headers: Mapping[str, str], body: bytes, now: datetime
) -> WebhookResponse:
    """Verify and deliver a request; returns the response to its sender.

    Never 410, although a workflow that has ended is gone: by the convention senders then stop for good.
    """
    try:
        delivery = webhooks.verify(headers, body, now=now)
        stored = await deliver(app, delivery)
    except DeliveryRefused as refused:
        if isinstance(refused, OutOfScope):  # signed by one of ours, so nobody else can fill the log with it
            log.warning("a webhook was refused: %s", refused)
        return WebhookResponse(refused.status, str(refused))
    except JobNotFound as missing:
        return WebhookResponse(404, str(missing))
    except (InvalidArguments, InvalidOption) as wrong:
        return WebhookResponse(400, str(wrong))
    except WorkflowError as refused:
        return WebhookResponse(409, str(refused))
    if not stored:
        # Senders repeat what is not 2xx, for days: for them a repetition has succeeded.
        return WebhookResponse(200, f"delivery {delivery.id} was stored before; it is stored once")
    return WebhookResponse(202, f"signal {delivery.signal} is stored for {delivery.to}")


# Reading a request


def _read(headers: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """Id, timestamp and signatures."""
    found = {name.lower(): value.strip() for name, value in headers.items()}
    missing = [name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if not found.get(name)]
    if missing:
        raise MalformedDelivery(f"there is no {' and no '.join(missing)}; sign as Standard Webhooks has it")
    delivery_id, timestamp = found["webhook-id"], found["webhook-timestamp"]
    if not _ID.fullmatch(delivery_id):
        raise MalformedDelivery("webhook-id must be 1 to 200 visible ASCII characters without a full stop")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise MalformedDelivery("webhook-timestamp must be whole seconds since 1970, in digits")
    signatures = list(_signatures(found["webhook-signature"]))
    if not 1 <= len(signatures) <= _MOST_SIGNATURES:
        raise MalformedDelivery(
            f"webhook-signature must hold 1 to {_MOST_SIGNATURES} signatures v1,BASE64, parted by spaces"
        )
    return delivery_id, timestamp, signatures


def _signatures(said: str) -> Iterator[str]:
    """Those of the version that we know; senders may add others, of other versions."""
    for one in said.split():
        version, _, signature = one.partition(",")
        if version == "v1" and signature:
            yield signature


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    to: str
    signal: str
    payload: JsonValue = None


def _parse(body: bytes) -> _Body:
    try:
        return _Body.model_validate_json(body)
    except ValidationError as error:
        raise MalformedDelivery(f"{_complaint(error)}; {_FORM}") from None


def _complaint(error: ValidationError) -> str:
    """What pydantic says first, without the value itself: a payload may be a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"])
    match first["type"]:
        case "json_invalid":
            return f"the body is no JSON ({first['msg'].removeprefix('Invalid JSON: ')})"
        case "model_type":
            return "the body is no JSON object"
        case "missing":
            return f"the body does not say {place!r}"
        case "extra_forbidden":
            return f"the body says {shown(place)}, which means nothing here"
        case _:
            return f"{shown(place)} does not fit: {first['msg']}"
