"""Pause: jobs of a queue, or of one task, stay where they are until somebody resumes, or until the time is up."""

import asyncio
from datetime import timedelta

from rowlock import Rowlock
from rowlock.errors import ResultTimeout

app = Rowlock()


@app.task(queue="mail")
async def send(user: int) -> str:
    return f"user {user} has mail"


async def main() -> None:
    async with app, app.worker(queues="mail"):
        await app.queues.apause("mail", duration=timedelta(hours=1), why="the mail server moves", by="ann")
        job = await send.aenqueue(42)  # enqueuing goes on

        try:
            await job.aresult(timeout=timedelta(milliseconds=200))
        except ResultTimeout:
            for pause in await app.queues.apauses():
                print(f"{pause.queue} is paused by {pause.by}: {pause.why}")

        print("resumed:", await app.queues.aresume("mail"))
        print(await job.aresult())


if __name__ == "__main__":
    asyncio.run(main())
