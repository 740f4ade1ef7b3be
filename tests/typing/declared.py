"""Tasks in every form in which they can be declared, for the two files beside this one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rowlock import Breaker, Context, Retry, Rowlock, Tasks

app = Rowlock()
tasks = Tasks()


@app.task
def add(a: int, b: int = 0) -> int:
    return a + b


@app.task
async def greet(name: str, *, loud: bool = False) -> str:
    return name.upper() if loud else name


@app.task(queue="mail", priority=2, retry=Retry(attempts=5), timeout=timedelta(seconds=30), aliases=["old.mail"])
async def send_mail(to: str, body: str) -> None:
    return None


@app.task(name="reports.total", history=False)
def total(amounts: list[float]) -> float:
    return sum(amounts)


@tasks.task
def measure(width: int) -> dict[str, int]:
    return {"width": width}


@tasks.task(queue="slow", expires=timedelta(hours=1), breaker=Breaker(failures=5, pause=timedelta(minutes=1)))
async def render(page: int) -> bytes:
    return b"%d" % page


@app.task
def count(*numbers: int, **named: bool) -> int:
    return len(numbers) + len(named)


@app.task.every("0 9 * * MON-FRI", tz="Europe/Paris")
async def report() -> int:
    return 0


@app.task.every(timedelta(minutes=5), jitter=timedelta(seconds=30), overlap="allow", catch_up=3, at_boot=True)
@tasks.task(queue="io")
def sync(since: int = 0) -> str:
    return str(since)


@tasks.task.every("@daily", name="sweep", catch_up="none")
def sweep(*, deep: bool = False) -> None:
    return None


@app.workflow
async def approve(ctx: Context, document: str, *, urgent: bool = False) -> bool:
    return urgent


@tasks.workflow(version=2, name="shop.checkout", queue="orders", retry=Retry(attempts=3), aliases=["checkout"])
async def checkout(ctx: Context, order: int, lines: list[str]) -> dict[str, int]:
    return {"order": order}


@checkout.migration(1)
def carry_checkout(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "lines": []}


@app.task.every("@daily")
@app.workflow(version=1)
async def clean(ctx: Context) -> None:
    return None


# No workflows, and no migration


def a_sync_function(ctx: Context, order: int) -> int:
    return order


async def without_its_context(order: int) -> int:
    return order


async def carry_later(state: dict[str, Any]) -> dict[str, Any]:
    return state
