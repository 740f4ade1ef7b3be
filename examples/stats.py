"""Stats: what an operator asks for, as values; `rowlock stats` prints the same."""

import asyncio
from datetime import timedelta

from rowlock import Rowlock

app = Rowlock()


@app.task(queue="mail")
async def send(user: int) -> None: ...


async def main() -> None:
    async with app:
        await app.aenqueue_many(send.bind(user) for user in range(3))
        await send.using(delay=timedelta(hours=1)).aenqueue(3)
        await app.queues.apause("mail")

        stats = await app.astats()

        mail = stats.queues["mail"]
        print(f"mail: {mail.runnable} due, {mail.delayed} later, {mail.running} running, paused: {mail.paused}")
        print(f"workers: {len(stats.fleet.workers or ())}, not known: {dict(stats.unknown)}")


if __name__ == "__main__":
    asyncio.run(main())
