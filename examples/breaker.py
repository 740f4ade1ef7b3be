"""A breaker: a task that keeps failing is paused by itself, and its jobs wait instead of spending their attempts."""

import asyncio
from datetime import timedelta

from rowlock import Breaker, Retry, Rowlock
from rowlock.errors import JobFailed, ResultTimeout

app = Rowlock()
partner = {"is up": False}


@app.task(retry=Retry.none(), breaker=Breaker(failures=3, window=timedelta(minutes=1), pause=timedelta(minutes=5)))
async def deliver(order: int) -> str:
    if not partner["is up"]:
        raise ConnectionError("the partner does not answer")
    return f"order {order}: delivered"


async def main() -> None:
    async with app, app.worker():
        for order in (1, 2, 3):
            job = await deliver.aenqueue(order)
            try:
                await job.aresult()
            except JobFailed as error:
                print(f"order {order}: {error.error_type}")

        # They are counted just after the third has ended.
        while not (pauses := await app.tasks.apauses()):  # noqa: ASYNC110  it is a row, and no event of ours
            await asyncio.sleep(0.01)
        print(f"{pauses[0].task} is paused by {pauses[0].by}")
        job = await deliver.aenqueue(4)
        try:
            await job.aresult(timeout=timedelta(milliseconds=200))
        except ResultTimeout:
            print("order 4: waits")

        partner["is up"] = True
        await app.tasks.aresume(deliver.name, why="they are back")  # or it goes on by itself after five minutes
        print(await job.aresult())


if __name__ == "__main__":
    asyncio.run(main())
