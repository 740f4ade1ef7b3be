"""Expiry: a job that was not started in time is not worth starting any more, and ends as cancelled."""

import asyncio
from datetime import timedelta

from rowlock import Rowlock
from rowlock.errors import JobCancelled

app = Rowlock()


@app.task(expires=timedelta(milliseconds=50))
async def tell(news: str) -> str:
    return f"have you heard? {news}"


async def main() -> None:
    async with app:
        late = await tell.aenqueue("it rained yesterday")
        unheard = await tell.using(queue="nobody listens").aenqueue("it rained here")
        fresh = await tell.using(expires=timedelta(hours=1)).aenqueue("it rains")
        await asyncio.sleep(0.1)  # only now somebody comes to work

        async with app.worker():
            print(await fresh.aresult())
            for job in (late, unheard):
                try:
                    await job.aresult()
                except JobCancelled as error:
                    print(f"on {job.queue}: {error.reason}")


if __name__ == "__main__":
    asyncio.run(main())
