"""Lifespan and around: what a worker opens once, and what surrounds every attempt."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from rowlock import Rowlock
from rowlock.types import CurrentJob

greeting: ContextVar[str] = ContextVar("greeting")


@asynccontextmanager
async def lifespan(_app: Rowlock) -> AsyncIterator[None]:
    print("worker opens its door")
    greeting.set("welcome")  # handlers see it; a client or a pool would be opened here
    yield
    print("worker closes its door")


app = Rowlock(lifespan=lifespan)


@app.around
@contextmanager
def logged(job: CurrentJob) -> Iterator[None]:
    print(f"{job.task}: attempt {job.attempt} begins")
    try:
        yield
    finally:
        print(f"{job.task}: attempt {job.attempt} ends")


@app.task
async def welcome(user: int) -> str:
    return f"{greeting.get()}, user {user}"


async def main() -> None:
    async with app, app.worker():
        print(await (await welcome.aenqueue(42)).aresult())


if __name__ == "__main__":
    asyncio.run(main())
