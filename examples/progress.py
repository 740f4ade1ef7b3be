"""Progress: a handler says how far it is, and anybody may look."""

import asyncio

from rowlock import Job, Rowlock, current_job

app = Rowlock()
seen = asyncio.Event()


@app.task
async def resize(pictures: list[str]) -> int:
    for done, picture in enumerate(pictures):
        current_job().progress(done / len(pictures), f"resizing {picture}")  # never waits; the last word counts
    await seen.wait()
    return len(pictures)


async def watch(job: Job[int]) -> None:
    """The worker writes the latest word of all its jobs about once a second."""
    while not seen.is_set():
        progress = (await job.arecord()).progress
        if progress is not None and progress.share == 0.75:
            print(f"{progress.share:.0%}, {progress.note}")
            seen.set()
        await asyncio.sleep(0.05)


async def main() -> None:
    async with app, app.worker():
        job = await resize.aenqueue(["boat.png", "oar.png", "rowlock.png", "thole.png"])
        await watch(job)
        print("resized:", await job.aresult())


if __name__ == "__main__":
    asyncio.run(main())
