"""A plain script, no framework: enqueue some jobs, watch them, and collect their results.

DATABASE_URL=postgresql://localhost/me python totals.py 1000 2000 3000
"""

import asyncio
import sys

from rowlock import Job, Rowlock, current_job
from rowlock.errors import JobFailed

app = Rowlock()


@app.task
async def total(up_to: int) -> int:
    """Add up all numbers, and say now and then how far it is."""
    if up_to < 0:
        raise ValueError("count up, not down")
    so_far = 0
    for number in range(up_to):
        so_far += number
        if number % 100 == 0:
            current_job().progress(number / up_to, f"{number} of {up_to}")
            await asyncio.sleep(0)  # others want to run, too
    return so_far


async def show(job: Job[int]) -> None:
    """Wait for one job, and print how it ended."""
    try:
        said = f"total {await job.aresult()}"
    except JobFailed as error:
        said = f"failed: {error.error_type}"
    record = await job.arecord()
    reached = f", last seen at {record.progress.note}" if record.progress else ""
    print(f"{record.args['up_to']}: {said}{reached}")


async def main(numbers: list[int]) -> None:
    """One commit for all jobs; a worker beside them; the results in the order of the jobs."""
    await app.amigrate()
    async with app, app.worker(slots=10):
        jobs = await app.aenqueue_many(total.using(attempts=1).bind(number) for number in numbers)
        for job in jobs:
            await show(job)


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]]))
