"""Page: the demo in the dashboard, and its buttons."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib import resources
from typing import Any, Literal

from rowlock.app.app import Rowlock
from rowlock.app.masking import Verbatim
from rowlock.dashboard.access.visitor import Auth
from rowlock.dashboard.action import Action, ActionResult
from rowlock.dashboard.app import Dashboard
from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.page import DashboardPage, Params
from rowlock.demo.browser.picture import Picture
from rowlock.demo.browser.sandbox import FLOOD, Sandbox

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
"""The statements that the page shows."""


class DemoParams(Params):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class DemoShown:
    """The picture, and the statements that make it what it is: by name, as they are sent to PostgreSQL."""

    picture: Picture
    flood: int
    statements: dict[str, str]


class WorkerParams(Params):
    """Which worker, and what to do with it."""

    number: int
    verb: Literal["start", "stop", "crash"]


class SwitchParams(Params):
    """What to do."""

    verb: Literal["flood", "stream", "dry", "hold", "release", "restart", "checkout"]


class OrderParams(Params):
    """Which checkout, and what to say to it."""

    order: int
    approved: bool


def dashboard_of(app: Rowlock, sandbox: Sandbox, *, auth: Auth) -> Dashboard:
    """The dashboard with the demo's page."""
    return Dashboard(app, auth=auth, pages=[page_of(sandbox)], actions=actions_of(sandbox), packages=["rowlock.demo"])


def page_of(sandbox: Sandbox) -> DashboardPage[DemoParams]:
    """The page."""
    statements: dict[str, str] = {name: Verbatim(_text(name)) for name in STATEMENTS}

    async def load(_context: RequestContext, _params: DemoParams) -> DemoShown:
        return DemoShown(sandbox.picture, FLOOD, statements)

    return DashboardPage(
        "demo", "/demo", DemoParams, DemoShown, load, says="The demo.", every=timedelta(milliseconds=500), nav="demo"
    )


def actions_of(sandbox: Sandbox) -> tuple[Action[Any], ...]:
    """The buttons."""

    async def to_worker(_context: RequestContext, params: WorkerParams) -> ActionResult:
        verbs = {"start": sandbox.start, "stop": sandbox.stop, "crash": sandbox.crash}
        return await _result_of(partial(verbs[params.verb], params.number))

    async def switch(_context: RequestContext, params: SwitchParams) -> ActionResult:
        verbs: dict[str, Callable[[], str]] = {
            "flood": sandbox.flood,
            "stream": partial(sandbox.set_streaming, on=True),
            "dry": partial(sandbox.set_streaming, on=False),
            "hold": sandbox.hold_snapshot,
            "release": sandbox.release_snapshot,
            "restart": sandbox.restart_postgres,
            "checkout": sandbox.start_checkout,
        }
        return await _result_of(verbs[params.verb])

    async def decide(_context: RequestContext, params: OrderParams) -> ActionResult:
        return await _result_of(partial(sandbox.decide, params.order, approved=params.approved))

    return (
        Action(
            "/demo/workers/{number}/{verb}", "operator", WorkerParams, to_worker, says="Start, stop or crash a worker."
        ),
        Action("/demo/orders/{order}", "operator", OrderParams, decide, says="Approve or refuse a checkout."),
        Action("/demo/{verb}", "operator", SwitchParams, switch, says="Do something to the queue or to PostgreSQL."),
    )


async def _result_of(verb: Callable[[], str]) -> ActionResult:
    # In a thread: they wait for processes and for PostgreSQL.
    return ActionResult(await asyncio.to_thread(verb))


def _text(name: str) -> str:
    return (resources.files("rowlock.store") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
