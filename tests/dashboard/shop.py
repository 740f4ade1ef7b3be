"""A shop's background work, for the dashboard's tests and pictures: `rowlock worker --app tests.dashboard.shop`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rowlock import Context, Retry, Rowlock, current_job

app = Rowlock()

_SOON = Retry(attempts=3, base=timedelta(milliseconds=50))
_PATIENT = Retry(attempts=8, base=timedelta(minutes=4))


class MailboxBusy(Exception):
    """The mail server asks us to come back."""


class CardDeclined(Exception):
    """The bank says no."""


async def work(seconds: float) -> None:
    """What stands here for work that takes so long, and can be cancelled."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, done.set)
    await done.wait()


@app.task(queue="mail", name="mail.send_receipt", retry=_PATIENT)
async def send_receipt(order: int, to: str, *, busy: bool = False) -> str:
    await work(0.02)
    if busy:
        raise MailboxBusy(f"{to} is over its quota; try again later")
    return f"<receipt-{order}@shop.example>"


@app.task(queue="default", name="photos.resize")
async def resize(photo: int, width: int = 640) -> dict[str, Any]:
    await work(0.02)
    return {"photo": photo, "width": width, "file": f"photo-{photo}-{width}.webp"}


@app.task(queue="payments", name="payments.charge", retry=_SOON)
async def charge(order: int, cents: int, card: str = "visa") -> str:
    await work(0.01)
    if order % 9 == 0:
        raise CardDeclined(f"order {order}: the bank has declined {cents / 100:.2f} on {card}")
    return f"payment-{order}"


@app.task(queue="imports", name="catalogue.import_file", timeout=timedelta(hours=1))
async def import_file(name: str, rows: int) -> int:
    """Long enough to be looked at while it runs."""
    job = current_job()
    for done in range(1, 2_000):
        await work(1.5)
        share = 0.2 + done / 2_500
        job.progress(share, note=f"row {int(rows * share):,} of {rows:,}")
    return rows


@app.task.every("30 3 * * *", tz="Europe/Paris", name="reports.nightly")
@app.task(queue="reports", name="reports.nightly")
async def nightly_report(region: str = "all") -> str:
    return f"report on {region}"


@app.task.every(timedelta(minutes=15), name="stock.sync")
@app.task(name="stock.sync")
async def sync_stock() -> int:
    return 1204


@app.task.every("0 9 * * MON", tz="America/New_York", name="mail.weekly_digest")
@app.task(queue="mail", name="mail.weekly_digest")
async def weekly_digest() -> None:
    return None


@dataclass
class Decision:
    """What a person says of an order."""

    approved: bool


async def reserve(items: int) -> dict[str, int]:
    await work(0.05)
    return {"reserved": items}


async def release(items: int) -> None:
    await work(0.01)


async def pay(order: int, cents: int) -> str:
    await work(0.12)
    return f"payment-{order}"


async def refund(order: int) -> None:
    await work(0.03)


async def ship(order: int) -> str:
    await work(0.08)
    if order % 5 == 0:
        raise ConnectionError(f"order {order}: the carrier does not answer")
    return f"parcel-{order}"


@app.workflow(name="orders.checkout", version=2, queue="orders", retry=_SOON)
async def checkout(ctx: Context, order: int, items: int, cents: int) -> str:
    ctx.state["status"] = "reserving"
    await ctx.step(reserve, items)
    ctx.undo(release, items)
    if cents > 500_00:
        ctx.state["status"] = "asks for approval"
        decision = await ctx.signal("approval", schema=Decision, timeout=timedelta(days=2))
        if not decision.approved:
            return "refused"
    ctx.undo(refund, order)
    ctx.state["status"] = "paying"
    await ctx.step(pay, order, cents)
    ctx.state["status"] = "shipping"
    parcel = await ctx.step(ship, order)
    await ctx.sleep(timedelta(hours=30 if order % 2 else 0))
    return parcel


@dataclass
class Slot:
    """When an order is to be brought."""

    at: datetime


@app.workflow(name="orders.deliver", version=1, queue="orders")
async def deliver(ctx: Context, order: int) -> str:
    slot = await ctx.signal("slot", schema=Slot)
    return f"order {order} at {slot.at.isoformat()}"


async def proofread(name: str) -> int:
    return len(name)


async def upload(name: str) -> str:
    if name.startswith("huge"):
        raise ConnectionError(f"{name}: the printer does not answer")
    return f"{name}.pdf"


@app.workflow(name="catalogue.publish", version=1, queue="orders", retry=_SOON)
async def publish(ctx: Context, name: str) -> str:
    """There is nothing to undo in it, so it can go on from where it has failed."""
    await ctx.step(proofread, name)
    return await ctx.step(upload, name)
