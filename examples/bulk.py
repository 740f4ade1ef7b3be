"""Bulk: many calls in one go, all or none."""

import asyncio

from rowlock import Rowlock

COUNT = 10_000

app = Rowlock()
sent: set[int] = set()
all_sent = asyncio.Event()


@app.task(queue="newsletter", history=False)
async def send_issue(reader: int) -> None:
    sent.add(reader)
    if len(sent) == COUNT:
        all_sent.set()


async def main() -> None:
    async with app:
        jobs = await app.aenqueue_many(send_issue.bind(reader) for reader in range(COUNT))
        print(f"{len(jobs)} enqueued")
        async with app.worker(queues="newsletter", slots=100):
            await all_sent.wait()
        print(f"{len(sent)} sent")


if __name__ == "__main__":
    asyncio.run(main())
