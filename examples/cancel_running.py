"""Cancel: a job that runs is told to stop, and whoever asks is told whether it was in time."""

import asyncio
import time

from rowlock import Rowlock, current_job
from rowlock.errors import JobCancelled

app = Rowlock()


@app.task
async def export(pages: int) -> int:
    try:
        for _ in range(pages):
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        print(f"a coroutine is cancelled where it awaits, told: {current_job().cancelled}")
        raise
    return pages


@app.task
def shrink(images: int) -> int:
    for _ in range(images):
        if current_job().cancelled:
            print("a thread looks, and stops by itself")
            break
        time.sleep(0.01)
    return images


async def main() -> None:
    async with app, app.worker():
        for task in (export, shrink):
            job = await task.aenqueue(100_000)
            while (await job.arecord()).state != "running":  # noqa: ASYNC110  a job runs elsewhere, usually
                await asyncio.sleep(0.01)
            print(f"cancelled: {await job.acancel(why='nobody waits for it')}")
            try:
                await job.aresult()
            except JobCancelled as error:
                print(f"it ended as cancelled: {error.reason}")

        job = await export.aenqueue(1)
        print(f"{await job.aresult()} page, cancelled: {await job.acancel()}")


if __name__ == "__main__":
    asyncio.run(main())
