"""Retries: what fails is tried again, later and later, as often as its policy says and on the errors it names."""

import asyncio
from datetime import timedelta

from rowlock import Retry, RetryAfter, Rowlock, current_job

app = Rowlock()
ended = asyncio.Semaphore(0)
patient = Retry(attempts=3, base=timedelta(milliseconds=10), cap=timedelta(minutes=5), on=ConnectionError)


@app.task(retry=patient)
async def call_partner(order: int) -> None:
    job = current_job()
    print(f"order {order}: attempt {job.attempt} of {job.attempts}")
    if job.attempt == 1:
        raise ConnectionError("partner is down")  # tried again after 20 ms and a bit
    if job.attempt == 2:
        raise RetryAfter(timedelta(milliseconds=50))  # the partner said when
    print(f"order {order}: delivered")
    ended.release()


@app.task(retry=patient)
async def read_order(text: str) -> None:
    print(f"reading {text!r}")
    ended.release()
    int(text)  # a ValueError is not worth another attempt: the job fails, and history keeps the traceback


async def main() -> None:
    async with app, app.worker():
        await call_partner.aenqueue(7)
        await ended.acquire()
        await read_order.aenqueue("seven")
        await ended.acquire()
    print("done")


if __name__ == "__main__":
    asyncio.run(main())
