"""A first job: enqueue it, and a worker runs it.

Like every program in this folder: set $ROWLOCK_URL, run `rowlock migrate` once, then run the file.
"""

import asyncio

from rowlock import Rowlock, current_job

app = Rowlock()
sent = asyncio.Event()


@app.task(queue="mail")
async def send_welcome(user_id: int) -> None:
    print(f"welcome, user {user_id}! (attempt {current_job().attempt})")
    sent.set()


async def main() -> None:
    async with app, app.worker(queues="mail"):
        job = await send_welcome.aenqueue(42)
        print(f"enqueued on {job.queue}")
        await sent.wait()


if __name__ == "__main__":
    asyncio.run(main())
