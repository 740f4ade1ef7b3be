"""Results: wait for what a handler returned, typed as it is declared, or for why there is nothing."""

import asyncio
from datetime import timedelta

from rowlock import Cancel, Retry, Rowlock
from rowlock.errors import JobCancelled, JobFailed, ResultTimeout

app = Rowlock()


@app.task(retry=Retry.none())
async def divide(a: int, b: int) -> float:
    if a == b == 0:
        raise Cancel("there is no right answer")
    return a / b


async def main() -> None:
    async with app, app.worker():
        job = await divide.aenqueue(1, 4)
        print("a quarter:", await job.aresult())

        later = await app.jobs.aget(job.id)  # from any process, by the id alone
        print("and once more:", await later.aresult(timeout=timedelta(0)))

        try:
            await (await divide.aenqueue(1, 0)).aresult()
        except JobFailed as error:
            print(f"failed by {error.error_type}: {error.message}")

        try:
            await (await divide.aenqueue(0, 0)).aresult()
        except JobCancelled as error:
            print("cancelled:", error.reason)

        tomorrow = await divide.using(delay=timedelta(days=1)).aenqueue(1, 2)
        try:
            await tomorrow.aresult(timeout=timedelta(milliseconds=10))
        except ResultTimeout:
            print("tomorrow:", (await tomorrow.arecord()).state)


if __name__ == "__main__":
    asyncio.run(main())
