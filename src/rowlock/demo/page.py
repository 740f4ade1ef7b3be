"""The demo's page in the dashboard, and its buttons."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib import resources
from typing import Any, Literal

from rowlock.app.masking import Verbatim
from rowlock.dashboard.action import Action, Did
from rowlock.dashboard.desk import Desk
from rowlock.dashboard.page import Asked, Page
from rowlock.demo.picture import Picture
from rowlock.demo.sandbox import FLOOD, Sandbox

STATEMENTS = (
    "job_claim",
    "job_settle",
    "job_return",
    "job_rescue",
    "job_hand_back",
    "job_load",
    "worker_renew",
    "worker_register",
    "step_record",
    "signal_send",
)
"""Those that the page speaks of."""


class NothingAsked(Asked):
    """It shows what there is."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The picture, and the statements that make it what it is: by name, as they are sent to PostgreSQL."""

    picture: Picture
    flood: int
    statements: dict[str, str]


class OfWorker(Asked):
    """Which worker, and what with it."""

    number: int
    verb: Literal["start", "stop", "crash"]


class OfSwitch(Asked):
    """What is to happen."""

    verb: Literal["flood", "stream", "dry", "hold", "release", "restart", "checkout"]


class OfOrder(Asked):
    """Which checkout, and what to say to it."""

    order: int
    approved: bool


def page_of(sandbox: Sandbox) -> Page[NothingAsked]:
    """The page."""
    statements: dict[str, str] = {name: Verbatim(_text(name)) for name in STATEMENTS}

    async def look(_desk: Desk, _asked: NothingAsked) -> Shown:
        return Shown(sandbox.picture, FLOOD, statements)

    return Page("demo", "/demo", NothingAsked, Shown, look, says="The demo.", every=timedelta(milliseconds=500))


def actions_of(sandbox: Sandbox) -> tuple[Action[Any], ...]:
    """The buttons."""

    async def to_worker(_desk: Desk, asked: OfWorker) -> Did:
        verbs = {"start": sandbox.start, "stop": sandbox.stop, "crash": sandbox.crash}
        return await _did(partial(verbs[asked.verb], asked.number))

    async def switch(_desk: Desk, asked: OfSwitch) -> Did:
        verbs: dict[str, Callable[[], str]] = {
            "flood": sandbox.flood,
            "stream": partial(sandbox.set_streaming, on=True),
            "dry": partial(sandbox.set_streaming, on=False),
            "hold": sandbox.hold_snapshot,
            "release": sandbox.release_snapshot,
            "restart": sandbox.restart_postgres,
            "checkout": sandbox.start_checkout,
        }
        return await _did(verbs[asked.verb])

    async def decide(_desk: Desk, asked: OfOrder) -> Did:
        return await _did(partial(sandbox.decide, asked.order, approved=asked.approved))

    return (
        Action("/demo/workers/{number}/{verb}", "operator", OfWorker, to_worker, says="Start, stop or crash a worker."),
        Action("/demo/orders/{order}", "operator", OfOrder, decide, says="Approve or refuse a checkout."),
        Action("/demo/{verb}", "operator", OfSwitch, switch, says="Do something to the queue or to PostgreSQL."),
    )


async def _did(verb: Callable[[], str]) -> Did:
    # In a thread: they wait for processes and for PostgreSQL.
    return Did(await asyncio.to_thread(verb))


def _text(name: str) -> str:
    return (resources.files("rowlock.store") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
