"""Signals from outside, by webhook: signed, so that only those who share a secret can send; and each stored once.

The convention is Standard Webhooks, so that senders use a library of theirs: the headers `webhook-id`,
`webhook-timestamp` (seconds since 1970) and `webhook-signature` (`v1,BASE64`, several parted by spaces). A signature is
an HMAC-SHA256 over `ID.TIMESTAMP.BODY`, and a secret is written `whsec_BASE64`.
"""

from __future__ import annotations

import hmac
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from rowlock.app import Rowlock
from rowlock.errors import InvalidArguments, InvalidOption, JobNotFound, RowlockError, WorkflowError
from rowlock.model.names import shown
from rowlock.model.words import span

MAX_BODY: Final = 1_000_000
TOLERANCE: Final = timedelta(minutes=5)
"""How far the clocks of sender and receiver may be apart, and how long a delivery may be on its way."""

_VARIABLE: Final = "ROWLOCK_WEBHOOK_SECRETS"
_PREFIX: Final = "whsec_"
_LEAST_BYTES: Final = 24  # of a secret, as the convention has it
# No full stop: with one, the same signed text could be read as another id with another body.
_ID: Final = re.compile(r"[!-\-/-~]{1,200}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,11}")
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
    """It was signed too long ago, or in what is the future here."""

    status = 401


class UnknownSignature(DeliveryRefused):
    """No secret of ours has signed it."""

    status = 401


@dataclass(frozen=True, slots=True)
class Delivery:
    """A signal that somebody with a secret of ours has sent: `id` is the sender's, the same when it is sent again."""

    id: str
    sent_at: datetime
    to: str
    signal: str
    payload: JsonValue = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a sender is told: an HTTP status, and a sentence."""

    status: int
    says: str


class Webhooks:
    """The secrets that senders sign with, each as `whsec_BASE64`; whatever one of them has signed is believed.

    To change a secret, have both for a while: the new one here, then at the sender, and then take the old one away.
    """

    def __init__(self, secrets: Sequence[str], *, said: str = "webhooks=") -> None:
        if isinstance(secrets, str):
            raise InvalidOption(f"{said} is one str; write a list of secrets")
        self._keys = tuple(_key(secret, f"secret {number} of {said}") for number, secret in enumerate(secrets, start=1))

    @classmethod
    def find(cls, given: Sequence[str] | None, environment: Mapping[str, str] = os.environ) -> Webhooks | None:
        """With the secrets given, else with those in $ROWLOCK_WEBHOOK_SECRETS, parted by spaces; None without any."""
        if given is not None:
            return cls(given) if given else None
        secrets = environment.get(_VARIABLE, "").split()
        return cls(secrets, said=f"${_VARIABLE}") if secrets else None

    def __repr__(self) -> str:
        return f"<Webhooks: {len(self._keys)} secrets>"

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
                f"sign anew what is sent again"
            )
        if not self._have_signed(f"{delivery_id}.{timestamp}.".encode() + body, signatures):
            raise UnknownSignature(
                "no signature in webhook-signature is by a secret known here; sign ID.TIMESTAMP.BODY, the body as sent"
            )
        said = _said(body)
        return Delivery(delivery_id, sent_at, said.to, said.signal, said.payload)

    def _have_signed(self, content: bytes, signatures: Sequence[str]) -> bool:
        ours = [b64encode(hmac.digest(key, content, "sha256")) for key in self._keys]
        # Each is compared with each, however soon two are the same: how long it takes tells nobody anything.
        same = [hmac.compare_digest(one, other.encode()) for one in ours for other in signatures]
        return any(same)


async def deliver(app: Rowlock, delivery: Delivery) -> bool:
    """Store the signal of a delivery. True: it is stored and committed. False: this delivery was stored before.

    Its id is the signal's key, so nothing else need remember it: one statement stores both, under the lock of the
    workflow's row, and the key is kept as long as the record of the workflow, also when that has ended or is retried.
    To another workflow it cannot be sent, for whom it is to is signed. (But if that is a key, and the record of the
    workflow that had it is deleted, and another is started with it, all in the five minutes that a signature holds,
    then the other is told. Whoever does such things sends to ids.)

    What `app.signal` refuses is refused: JobNotFound, NotAWorkflow, SignalRefused, InvalidOption, InvalidArguments.
    """
    with app.within(None):  # on a connection of ours: when this answers, it is committed
        return await app.asignal(delivery.to, delivery.signal, delivery.payload, key=f"webhook:{delivery.id}")


async def receive(
    app: Rowlock, webhooks: Webhooks, *, headers: Mapping[str, str], body: bytes, now: datetime
) -> Answer:
    """Verify and deliver what was sent, and what to tell the sender.

    Never 410, although a workflow that has ended is gone: by the convention senders then stop for good.
    """
    try:
        delivery = webhooks.verify(headers, body, now=now)
        stored = await deliver(app, delivery)
    except DeliveryRefused as refused:
        return Answer(refused.status, str(refused))
    except JobNotFound as missing:
        return Answer(404, str(missing))
    except (InvalidArguments, InvalidOption) as wrong:
        return Answer(400, str(wrong))
    except WorkflowError as refused:
        return Answer(409, str(refused))
    if not stored:
        return Answer(409, f"delivery {delivery.id} is stored already, and not twice; there is nothing left to send")
    return Answer(202, f"signal {delivery.signal} is stored for {delivery.to}")


# What is read


def _key(secret: object, said: str) -> bytes:
    """The bytes of a secret. What is wrong with it is said without a word of it."""
    advice = "make one: python -c \"import base64, os; print('whsec_' + base64.b64encode(os.urandom(32)).decode())\""
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        raise InvalidOption(f"{said} does not begin with {_PREFIX}; {advice}")
    try:
        key = b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        raise InvalidOption(f"{said} is no base64 after {_PREFIX}; {advice}") from None
    if len(key) < _LEAST_BYTES:
        raise InvalidOption(f"{said} has {len(key)} bytes, and needs {_LEAST_BYTES} at least; {advice}")
    return key


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


def _said(body: bytes) -> _Body:
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
