"""Priorities from -4 to 4, higher first; and jobs that must not run before their time, or not after it."""

import asyncio
from datetime import UTC, datetime, timedelta

from rowlock import Rowlock

app = Rowlock()
last = asyncio.Event()


@app.task(priority=1)
async def say(word: str) -> None:
    print(word)
    if word == "last":
        last.set()


async def main() -> None:
    soon = timedelta(milliseconds=500)
    async with app:
        await say.using(priority=-3).aenqueue("third")
        await say.aenqueue("second")
        await say.using(priority=4).aenqueue("first")
        await say.using(priority=-4, delay=soon).aenqueue("then")
        await say.using(priority=-4, run_at=datetime.now(UTC) + 2 * soon).aenqueue("last")
        await say.using(priority=4, expires=timedelta(microseconds=1)).aenqueue("too late to be said")
        async with app.worker(slots=1):
            await last.wait()


if __name__ == "__main__":
    asyncio.run(main())
