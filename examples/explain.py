"""Explain: why is it not running? One sentence, the facts behind it, and what to do."""

import asyncio
from datetime import timedelta

from rowlock import Rowlock

app = Rowlock()


@app.task(queue="mail")
async def send(user: int) -> None: ...


async def main() -> None:
    async with app:
        job = await send.aenqueue(42)
        found = await job.aexplain()
        print(f"{found.code}: {found.says}")

        await app.queues.apause("mail", duration=timedelta(hours=1), why="the mail server moves", by="ann")
        found = await job.aexplain()
        print(f"{found.code}, by {found.facts['paused_by']}: {found.facts['why']}")
        print(f"do: {found.do}")
        print(f"also: {found.also[0]}")  # to resume the queue is not enough

        await app.queues.aresume("mail")
        async with app.worker(queues="mail"):
            await job.aresult()
        found = await app.jobs.aexplain(job.id)  # by its id
        print(f"{found.code}, to do: {found.do}")


if __name__ == "__main__":
    asyncio.run(main())
