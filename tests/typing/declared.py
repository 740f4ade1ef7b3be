"""Tasks in every form in which they can be declared, for the two files beside this one."""

from __future__ import annotations

from datetime import timedelta

from rowlock import Retry, Rowlock, Tasks

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


@tasks.task(queue="slow")
async def render(page: int) -> bytes:
    return b"%d" % page


@app.task
def count(*numbers: int, **named: bool) -> int:
    return len(numbers) + len(named)
