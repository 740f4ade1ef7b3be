"""Signals by webhook: who is believed, what is refused and how that is said, and that a delivery is stored once."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rowlock import Filter, Rowlock
from rowlock.dashboard.http.webhook import (
    MAX_BODY,
    TOLERANCE,
    Delivery,
    DeliveryRefused,
    DeliveryTooLarge,
    MalformedDelivery,
    UnknownSignature,
    UntimelyDelivery,
    WebhookResponse,
    Webhooks,
    WebhookSender,
    deliver,
    receive,
)
from rowlock.errors import InvalidArguments, InvalidOption, JobNotFound, NotAWorkflow, SignalRefused
from tests.rows import Db, put
from tests.workflow.remembering import end, put_workflow

OLD = "whsec_" + base64.b64encode(b"the old secret, of 32 bytes, ok?").decode()
NEW = "whsec_" + base64.b64encode(b"the new secret, of 32 bytes, ok!").decode()
STRANGE = "whsec_" + base64.b64encode(b"somebody else's, of 32 bytes too").decode()
NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
BODY = b'{"to": "order:7", "signal": "paid", "payload": {"amount": 120}}'


def sign(body: bytes = BODY, *secrets: str, delivery_id: str = "msg_1", at: datetime = NOW) -> dict[str, str]:
    """The headers of a sender that has read the convention, and none of our code."""
    timestamp = str(int(at.timestamp()))
    content = delivery_id.encode() + b"." + timestamp.encode() + b"." + body
    signatures = []
    for secret in secrets or (NEW,):
        key = base64.b64decode(secret.partition("_")[2])
        signatures.append("v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode())
    return {"webhook-id": delivery_id, "webhook-timestamp": timestamp, "webhook-signature": " ".join(signatures)}


def delivery_of(to: object, signal: str = "paid", *, delivery_id: str = "msg_1", payload: Any = None) -> Delivery:  # noqa: ANN401  whatever JSON can hold
    """A delivery that was verified: from somebody who may send any signal."""
    return Delivery(delivery_id, NOW, str(to), signal, (WebhookSender.read(NEW, 1, "webhooks="),), payload)


def message(to: object, signal: str = "paid", payload: object = None) -> bytes:
    return json.dumps({"to": str(to), "signal": signal, "payload": payload}).encode()


def stored(db: Db) -> list[tuple[object, ...]]:
    return db.execute("select job, name, payload, key from rowlock.signals order by job, number").fetchall()


# Who is believed


def test_a_signed_delivery_says_what_was_sent() -> None:
    delivery = Webhooks([NEW]).verify(sign(), BODY, now=NOW)

    assert delivery == delivery_of("order:7", payload={"amount": 120})


def test_a_signature_that_openssl_has_made_is_believed() -> None:
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1772352000",
        "webhook-signature": "v1,bsUEJjRivXZpWsMwzWbMvnyPqKOF+Q76eo55kq8GbF4=",
    }

    assert Webhooks([NEW]).verify(headers, BODY, now=NOW).to == "order:7"


def test_the_signature_that_the_conventions_own_libraries_are_tested_with_is_believed() -> None:
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    webhooks, now = Webhooks(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]), datetime.fromtimestamp(1614265330, UTC)

    # Its body is none of ours; but that is read only when the signature has been found good.
    with pytest.raises(MalformedDelivery, match="does not say 'to'"):
        webhooks.verify(headers, b'{"test": 2432232314}', now=now)
    with pytest.raises(UnknownSignature):
        webhooks.verify(headers, b'{"test": 2432232315}', now=now)


def test_headers_are_known_in_capitals_and_small_letters() -> None:
    headers = {name.title(): value for name, value in sign().items()}

    assert Webhooks([NEW]).verify(headers, BODY, now=NOW).id == "msg_1"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [((OLD, NEW), (OLD,)), ((OLD, NEW), (NEW,)), ((NEW,), (OLD, NEW)), ((OLD,), (STRANGE, NEW, OLD))],
    ids=["the old one", "the new one", "signed with both", "the last of three"],
)
def test_while_a_secret_is_changed_either_is_believed(ours: tuple[str, ...], theirs: tuple[str, ...]) -> None:
    assert Webhooks(ours).verify(sign(BODY, *theirs), BODY, now=NOW).id == "msg_1"


def test_signatures_of_other_versions_are_passed_over() -> None:
    headers = sign()
    headers["webhook-signature"] = f"v1a,AAAA v2,{headers['webhook-signature'][3:]} {headers['webhook-signature']}"

    assert Webhooks([NEW]).verify(headers, BODY, now=NOW).id == "msg_1"


@pytest.mark.parametrize(
    ("changed", "body"),
    [
        ({}, BODY[:-1]),
        ({}, BODY + b" "),
        ({}, BODY.replace(b"120", b"121")),
        ({"webhook-id": "msg_2"}, BODY),
        ({"webhook-timestamp": str(int(NOW.timestamp()) + 1)}, BODY),
        ({"webhook-signature": sign(BODY, STRANGE)["webhook-signature"]}, BODY),
        ({"webhook-signature": sign(BODY, NEW)["webhook-signature"][:-4]}, BODY),
        ({"webhook-signature": "v2" + sign(BODY, NEW)["webhook-signature"][2:] + " v1,é"}, BODY),
        ({"webhook-signature": "v1,dGhpcyBpcyBub25l"}, BODY),
    ],
    ids=["cut", "longer", "changed", "id", "timestamp", "wrong secret", "cut signature", "other version", "nonsense"],
)
def test_what_was_changed_on_its_way_is_not_believed(changed: dict[str, str], body: bytes) -> None:
    with pytest.raises(UnknownSignature):
        Webhooks([NEW, OLD]).verify(sign() | changed, body, now=NOW)


def test_a_secret_that_was_taken_away_is_not_believed_any_more() -> None:
    with pytest.raises(UnknownSignature):
        Webhooks([NEW]).verify(sign(BODY, OLD), BODY, now=NOW)


@pytest.mark.parametrize("apart", [-TOLERANCE, timedelta(0), TOLERANCE], ids=["late", "at once", "early"])
def test_clocks_may_be_five_minutes_apart(apart: timedelta) -> None:
    assert Webhooks([NEW]).verify(sign(at=NOW + apart), BODY, now=NOW).sent_at == NOW + apart


@pytest.mark.parametrize(
    ("apart", "words"), [(timedelta(seconds=-301), "5 min ago"), (timedelta(hours=2), "2 h from now")]
)
def test_what_was_signed_at_another_time_is_refused(apart: timedelta, words: str) -> None:
    with pytest.raises(UntimelyDelivery, match=words):
        Webhooks([NEW]).verify(sign(at=NOW + apart), BODY, now=NOW)


# What is refused, and in which words


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"webhook-id": ""}, "no webhook-id"),
        ({"webhook-id": "", "webhook-signature": " "}, "no webhook-id and no webhook-signature"),
        ({"webhook-id": "msg.1"}, "without a full stop"),
        ({"webhook-id": "msg 1"}, "visible"),
        ({"webhook-id": "é"}, "ASCII"),
        ({"webhook-id": "m" * 201}, "200"),
        ({"webhook-timestamp": ""}, "no webhook-timestamp"),
        ({"webhook-timestamp": "2026-03-01T08:00:00Z"}, "seconds since 1970"),
        ({"webhook-timestamp": "-1"}, "seconds since 1970"),
        ({"webhook-timestamp": "1.5"}, "seconds since 1970"),
        ({"webhook-timestamp": "१७"}, "in digits"),
        ({"webhook-timestamp": "9" * 12}, "seconds since 1970"),
        ({"webhook-signature": "hello"}, "v1,BASE64"),
        ({"webhook-signature": "v1,"}, "v1,BASE64"),
        ({"webhook-signature": "v1a,AAAA"}, "v1,BASE64"),
        ({"webhook-signature": "v1,AAAA " * 21}, "1 to 20 signatures"),
    ],
)
def test_headers_that_are_none_are_refused_in_a_sentence(changed: dict[str, str], words: str) -> None:
    with pytest.raises(MalformedDelivery, match=words):
        Webhooks([NEW]).verify(sign() | changed, BODY, now=NOW)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "no JSON object"),
        (b'"paid"', "no JSON object"),
        (b'{"to": "order:7"}', "does not say 'signal'"),
        (b'{"signal": "paid"}', "does not say 'to'"),
        (b'{"to": 7, "signal": "paid"}', "'to' does not fit: Input should be a valid string"),
        (b'{"to": "order:7", "signal": "paid", "paylod": 1}', "says 'paylod', which means nothing"),
        (b'{"to": "order:7", "signal": "paid", "payload": ' + b"[" * 9000 + b"]" * 9000 + b"}", "recursion"),
    ],
    ids=["empty", "half", "bytes", "list", "text", "no signal", "no target", "number", "misspelt", "deep"],
)
def test_a_body_that_does_not_fit_is_refused_in_a_sentence(body: bytes, words: str) -> None:
    with pytest.raises(MalformedDelivery, match=words) as refused:
        Webhooks([NEW]).verify(sign(body), body, now=NOW)

    assert 'send {"to": ID or KEY, "signal": NAME, "payload": …}' in str(refused.value)


def test_a_body_over_the_limit_is_refused_before_anything_is_computed() -> None:
    with pytest.raises(DeliveryTooLarge, match="1,000,001 bytes"):
        Webhooks([NEW]).verify({}, b"x" * (MAX_BODY + 1), now=NOW)


def test_a_refusal_never_says_what_was_carried() -> None:
    body = b'{"to": "order:7", "signal": ["sesame"], "payload": "sesame"}'

    with pytest.raises(DeliveryRefused) as refused:
        Webhooks([NEW]).verify(sign(body), body, now=NOW)

    assert "sesame" not in str(refused.value)


# Secrets


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ("sesame" * 8, "begin with whsec_"),
        ("whsec_sesame!" * 8, "not base64"),
        ("whsec_" + base64.b64encode(b"sesame" * 3).decode(), "18 bytes, and needs 24"),
        ("whsec_", "0 bytes"),
        (b"whsec_sesame", "begin with whsec_"),
    ],
)
def test_a_secret_that_is_none_is_refused_without_a_word_of_it(secret: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidOption, match=words) as refused:
        Webhooks([NEW, secret])

    assert str(refused.value).startswith("secret 2 of webhooks=")
    assert "sesame" not in str(refused.value)
    assert base64.b64encode(b"sesame").decode() not in str(refused.value)


def test_one_text_is_no_list_of_secrets() -> None:
    with pytest.raises(InvalidOption, match="list of secrets") as refused:
        Webhooks(NEW)

    assert NEW not in str(refused.value)


def test_secrets_are_given_or_found_in_the_environment() -> None:
    environment = {"ROWLOCK_WEBHOOK_SECRETS": f"  {OLD}  {NEW}\n"}

    given, found = Webhooks.find([NEW], environment), Webhooks.find(None, environment)

    assert (repr(given), repr(found)) == ("<Webhooks: 1 secrets>", "<Webhooks: 2 secrets>")
    assert found is not None
    assert found.verify(sign(BODY, OLD), BODY, now=NOW).id == "msg_1"


def test_without_secrets_there_are_no_webhooks() -> None:
    assert Webhooks.find(None, {}) is None
    assert Webhooks.find(None, {"ROWLOCK_WEBHOOK_SECRETS": " "}) is None
    assert Webhooks.find([], {"ROWLOCK_WEBHOOK_SECRETS": NEW}) is None


def test_a_wrong_secret_in_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(InvalidOption, match=r"^secret 2 of \$ROWLOCK_WEBHOOK_SECRETS "):
        Webhooks.find(None, {"ROWLOCK_WEBHOOK_SECRETS": f"{NEW} whsec_AAAA"})


def test_neither_secrets_nor_payloads_are_printed() -> None:
    delivery = Webhooks([NEW]).verify(sign(), BODY, now=NOW)

    printed = f"{Webhooks([NEW])!r} {Webhooks([NEW])} {delivery!r}"
    assert NEW.removeprefix("whsec_") not in printed
    assert "the new secret" not in printed
    assert "120" not in printed


# Stored once


def test_a_delivery_is_stored_once(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "waiting", key="order:7")
    delivery = Webhooks([NEW]).verify(sign(), BODY, now=NOW)

    async def twice() -> list[bool]:
        async with app:
            return [await deliver(app, delivery), await deliver(app, delivery)]

    assert asyncio.run(twice()) == [True, False]
    assert stored(db) == [(job, "paid", {"amount": 120}, "webhook:msg_1")]


def test_a_delivery_that_comes_twenty_times_at_once_is_stored_once(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, "waiting", key="order:7")
    delivery = Webhooks([NEW]).verify(sign(), BODY, now=NOW)

    async def at_once() -> list[bool]:
        async with app:
            return await asyncio.gather(*(deliver(app, delivery) for _ in range(20)))

    assert sorted(asyncio.run(at_once())) == [False] * 19 + [True]
    assert [row[0] for row in stored(db)] == [job]


def test_a_delivery_that_was_signed_anew_is_the_same_delivery(app: Rowlock, db: Db) -> None:
    put_workflow(db, "waiting", key="order:7")
    webhooks, later = Webhooks([OLD, NEW]), NOW + timedelta(hours=2)
    first = webhooks.verify(sign(BODY, OLD), BODY, now=NOW)
    again = webhooks.verify(sign(BODY, NEW, at=later), BODY, now=later)

    async def both() -> list[bool]:
        async with app:
            return [await deliver(app, first), await deliver(app, again)]

    assert asyncio.run(both()) == [True, False]


def test_a_delivery_is_known_after_its_workflow_has_ended_and_after_that_is_retried(app: Rowlock, db: Db) -> None:
    job = put_workflow(db)
    known, late = delivery_of(job), delivery_of(job, delivery_id="msg_2")

    async def story() -> list[bool]:
        async with app:
            answers = [await deliver(app, known)]
            end(db, job)
            answers.append(await deliver(app, known))
            with pytest.raises(SignalRefused):
                await deliver(app, late)
            await app.jobs.aretry(Filter(ids=[job]))
            return [*answers, await deliver(app, known), await deliver(app, late)]

    assert asyncio.run(story()) == [True, False, False, True]
    assert [row[3] for row in stored(db)] == ["webhook:msg_1", "webhook:msg_2"]


def test_two_senders_ids_of_two_workflows_do_not_meet(app: Rowlock, db: Db) -> None:
    one, other = put_workflow(db), put_workflow(db)

    async def both() -> list[bool]:
        async with app:
            return [await deliver(app, delivery_of(job)) for job in (one, other)]

    assert asyncio.run(both()) == [True, True]


def test_what_is_stored_is_committed_though_the_app_joins_its_callers_transactions(url: str, db: Db) -> None:
    put_workflow(db, key="order:7")

    async def story() -> bool:
        async with (
            await psycopg.AsyncConnection.connect(url) as theirs,
            Rowlock(url, connection=lambda: theirs) as app,
        ):
            answer = await deliver(app, delivery_of("order:7"))
            await theirs.rollback()
            return answer

    assert asyncio.run(story())
    assert len(stored(db)) == 1


# What senders are told


def told(app: Rowlock, body: bytes, headers: dict[str, str] | None = None) -> WebhookResponse:
    async def send() -> WebhookResponse:
        async with app:
            signed = sign(body) if headers is None else headers
            return await receive(app, Webhooks([NEW]), headers=signed, body=body, now=NOW)

    return asyncio.run(send())


def test_a_sender_is_told_that_it_is_stored_and_then_that_it_is_there_already(app: Rowlock, db: Db) -> None:
    put_workflow(db, key="order:7")

    answers = [told(app, BODY), told(app, BODY)]

    assert answers == [
        WebhookResponse(202, "signal paid is stored for order:7"),
        WebhookResponse(200, "delivery msg_1 was stored before; it is stored once"),
    ]
    assert len(stored(db)) == 1


@pytest.mark.parametrize(
    ("state", "version", "words"),
    [("succeeded", 1, "has ended (succeeded)"), ("ready", None, "takes no signals")],
    ids=["ended", "no workflow"],
)
def test_a_sender_is_told_who_takes_no_signals(
    app: Rowlock, db: Db, state: str, version: int | None, words: str
) -> None:
    answer = told(app, message(put(db, state, version=version)))

    assert answer.status == 409
    assert words in answer.says
    assert stored(db) == []


def answers(app: Rowlock, webhooks: Webhooks, *sent: tuple[bytes, tuple[str, ...]]) -> list[int]:
    """The status for each body, which these secrets have signed."""

    async def send() -> list[int]:
        async with app:
            return [
                (
                    await receive(app, webhooks, headers=sign(body, *secrets, delivery_id=f"{at}"), body=body, now=NOW)
                ).status
                for at, (body, secrets) in enumerate(sent)
            ]

    return asyncio.run(send())


def test_a_secret_is_good_for_the_signals_and_workflows_of_its_scope(app: Rowlock, db: Db) -> None:
    job = put_workflow(db, key="order:7", task="checkout")
    put_workflow(db, key="order:8", task="refund")
    webhooks = Webhooks([f"stripe={OLD}|checkout:paid|check*:refunded.*", f"{NEW}|*:paid"])

    statuses = answers(
        app,
        webhooks,
        (message("order:7"), (OLD,)),
        (message(job, "refunded.partly"), (OLD,)),
        (message("order:7", "approval"), (OLD,)),
        (message("order:8"), (OLD,)),
        (message("order:9"), (OLD,)),
        (message("order:8"), (NEW,)),
        (message("order:8", "approval"), (NEW,)),
    )

    assert statuses == [202, 202, 403, 403, 404, 202, 403]
    assert [row[1] for row in stored(db)] == ["paid", "refunded.partly", "paid"]
    assert db.execute("select actor, details ->> 'signal' from rowlock.events order by id").fetchall() == [
        ("webhook stripe", "paid"),
        ("webhook stripe", "refunded.partly"),
        ("webhook secret 2", "paid"),
    ]


@pytest.mark.parametrize(
    ("secrets", "signed_with"),
    [((OLD, OLD), (OLD,)), ((OLD, NEW), (OLD, NEW))],
    ids=["two entries with one key", "signed with both secrets"],
)
def test_every_scope_of_those_who_signed_counts(
    app: Rowlock, db: Db, secrets: tuple[str, str], signed_with: tuple[str, ...]
) -> None:
    put_workflow(db, key="order:7", task="checkout")
    put_workflow(db, key="order:8", task="refund")
    put_workflow(db, key="order:9", task="parcel")
    webhooks = Webhooks([f"shop={secrets[0]}|checkout:paid", f"bank={secrets[1]}|refund:paid"])

    statuses = answers(app, webhooks, *((message(f"order:{n}"), signed_with) for n in (7, 8, 9)))

    assert statuses == [202, 202, 403]
    assert db.execute("select actor from rowlock.events order by id").fetchall() == [
        ("webhook shop",),
        ("webhook bank",),
    ]


def test_a_signal_by_a_secret_without_a_name_is_in_the_audit(app: Rowlock, db: Db) -> None:
    put_workflow(db, key="order:7")

    answers(app, Webhooks([NEW]), (BODY, (NEW,)))

    assert db.execute("select actor, details ->> 'signal' from rowlock.events").fetchall() == [
        ("webhook secret 1", "paid")
    ]


def test_a_secret_without_a_scope_is_warned_about_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    Webhooks([f"stripe={OLD}|*:*", NEW])

    assert [record.getMessage() for record in caplog.records] == [
        "secret 2 of webhooks= may send any signal to any workflow; add a scope, such as |checkout:paid, or |*:*"
    ]


def test_a_scoped_signal_goes_to_the_workflow_that_was_checked_though_another_has_its_key_by_then(
    app: Rowlock, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = put_workflow(db, key="order:7", task="checkout")
    other = put_workflow(db, task="refund")
    send = Rowlock.asignal

    async def after_the_key_has_moved(*args: Any, **options: Any) -> bool:  # noqa: ANN401  as they come
        db.execute("update rowlock.keys set job = %s where key = 'order:7'", (other,))
        return await send(*args, **options)

    monkeypatch.setattr(Rowlock, "asignal", after_the_key_has_moved)

    statuses = answers(app, Webhooks([f"shop={NEW}|checkout:paid"]), (BODY, (NEW,)))

    assert statuses == [202]
    assert [row[0] for row in stored(db)] == [checked]


def test_a_key_of_32_digits_is_no_id_for_a_scope(app: Rowlock, db: Db) -> None:
    allowed, key = put_workflow(db, task="checkout"), uuid4().hex
    put_workflow(db, key=allowed.hex, task="refund")
    keyed = put_workflow(db, key=key, task="checkout")

    statuses = answers(
        app,
        Webhooks([f"shop={NEW}|checkout:paid"]),
        (message(allowed.hex), (NEW,)),
        (message(key), (NEW,)),
    )

    assert statuses == [403, 202]
    assert [row[0] for row in stored(db)] == [keyed]


def test_a_scope_that_is_none_is_refused_without_a_word_of_the_secret() -> None:
    with pytest.raises(InvalidOption, match="the scope 'checkout' of secret 1 of webhooks= is not WORKFLOW:SIGNAL"):
        Webhooks([f"{OLD}|checkout"])


def test_a_sender_is_told_that_there_is_nobody(app: Rowlock) -> None:
    nobody = uuid4()

    answers = [told(app, message(nobody)), told(app, message("order:8"))]

    assert [answer.status for answer in answers] == [404, 404]
    assert str(nobody) in answers[0].says
    assert "order:8" in answers[1].says


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (message("order:7", "a/b"), "contains '/'"),
        (message("order:7", ""), "signal name"),
        (message("", "paid"), "key"),
        (message("\x00", "paid"), "NUL"),
        (message("order:7", "paid", "\x00"), "NUL"),
        (b'{"to": "order:7", "signal": "paid", "payload": NaN}', "payload"),
    ],
    ids=["slash", "no name", "nobody", "NUL", "NUL in it", "NaN"],
)
def test_a_sender_is_told_what_cannot_be_sent(app: Rowlock, db: Db, body: bytes, words: str) -> None:
    put_workflow(db, key="order:7")

    answer = told(app, body)

    assert answer.status == 400
    assert words in answer.says
    assert stored(db) == []


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({}, BODY, 400),
        (sign(BODY, STRANGE), BODY, 401),
        (sign(at=NOW - timedelta(minutes=6)), BODY, 401),
        (sign(b"{}"), b"{}", 400),
        (sign(), b"x" * (MAX_BODY + 1), 413),
    ],
    ids=["unsigned", "unknown", "old", "no body", "large"],
)
def test_what_is_refused_never_reaches_the_database(headers: dict[str, str], body: bytes, status: int) -> None:
    nowhere = Rowlock("postgresql://nobody@127.0.0.1:1/nothing")

    assert told(nowhere, body, headers).status == status


def test_the_refusals_of_a_signal_are_those_of_the_app(app: Rowlock, db: Db) -> None:
    plain = put(db)
    refusals = {
        JobNotFound: delivery_of("order:8"),
        NotAWorkflow: delivery_of(plain),
        InvalidOption: delivery_of(plain, "a/b"),
        InvalidArguments: delivery_of(plain, payload="\x00"),
    }

    async def each() -> None:
        async with app:
            for refusal, delivery in refusals.items():
                with pytest.raises(refusal):
                    await deliver(app, delivery)

    asyncio.run(each())
