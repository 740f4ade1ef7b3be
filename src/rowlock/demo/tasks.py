"""Demo tasks: their arguments say how long each takes and how often it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

from rowlock.app.registry import Tasks
from rowlock.app.tasks import Call
from rowlock.model.retry import Retry
from rowlock.worker.attempt import current_job
from rowlock.workflow.context import Context

QUEUE = "demo"

tasks = Tasks()

_SOON = Retry(attempts=4, base=timedelta(milliseconds=200), cap=timedelta(seconds=2))
_THRICE = Retry(attempts=3, base=timedelta(milliseconds=200), cap=timedelta(seconds=2))


class MailboxBusy(Exception):
    """The mail server asks us to come back."""


class CardDeclined(Exception):
    """The bank says no."""


@tasks.task(queue=QUEUE, name="resize_photo")
async def resize_photo(photo: int, seconds: float) -> str:
    """Never fails."""
    await asyncio.sleep(seconds)
    return f"photo-{photo}-small.jpg"


@tasks.task(queue=QUEUE, name="print_invoice")
def print_invoice(order: int, seconds: float) -> str:
    """A plain function: it runs in a thread."""
    time.sleep(seconds)
    return f"invoice-{order}.pdf"


@tasks.task(queue=QUEUE, name="send_welcome", retry=_SOON)
async def send_welcome(user: int, seconds: float, bounces: int) -> None:
    """Comes through after some bounces."""
    await asyncio.sleep(seconds)
    if current_job().attempt <= bounces:
        raise MailboxBusy(f"user {user}: try again later")


@tasks.task(queue=QUEUE, name="charge_card", retry=_THRICE)
async def charge_card(order: int, seconds: float, declines: int) -> str:
    """Fails for good when it is declined three times."""
    await asyncio.sleep(seconds)
    if current_job().attempt <= declines:
        raise CardDeclined(f"order {order}")
    return f"receipt-{order}"


@tasks.task(queue=QUEUE, name="tick")
async def tick() -> None:
    """Nothing: a flood is made of it."""


# A checkout: a workflow, each step of which is remembered; in the middle it asks a person.


@dataclass
class Approval:
    """What that person says."""

    approved: bool


async def pick(order: int) -> str:
    """Take it from the shelf."""
    await asyncio.sleep(1.2)
    return f"shelf-{order % 7}"


async def put_back(order: int) -> str:
    """Undo that."""
    await asyncio.sleep(0.6)
    return f"shelf-{order % 7}"


async def charge(order: int) -> str:
    """Take the money."""
    await asyncio.sleep(1.2)
    return f"payment-{order}"


async def ship(order: int) -> str:
    """Send it."""
    await asyncio.sleep(1.2)
    return f"parcel-{order}"


class OrderRefused(Exception):
    """The person says no."""


@tasks.workflow(queue=QUEUE, name="checkout", retry=_THRICE)
async def checkout(ctx: Context, order: int) -> str:
    """Pick, ask, charge, ship; if the person says no, what was picked is put back."""
    await ctx.step(pick, order)
    ctx.undo(put_back, order)
    decision = await ctx.signal("approval", schema=Approval)
    if not decision.approved:
        raise OrderRefused(f"order {order}")
    await ctx.step(charge, order)
    return await ctx.step(ship, order)


def stream(random: Random, *, longest: float) -> Iterator[Call[Any]]:
    """Calls without end, of up to `longest` seconds each: one in eight fails at first, one in fifty for good."""
    for number in count(1):
        seconds = round(random.uniform(0.1, 1.0) * longest, 3)
        match random.choices(("photo", "invoice", "welcome", "card"), (9, 3, 5, 3))[0]:
            case "photo":
                yield resize_photo.bind(number, seconds)
            case "invoice":
                yield print_invoice.bind(number, seconds)
            case "welcome":
                yield send_welcome.bind(number, seconds, random.choice((0, 0, 0, 0, 1, 2)))
            case _:
                yield charge_card.bind(number, seconds, random.choice((0, 0, 0, 0, 0, 0, 1, 3)))
