"""Schedules: a rule makes jobs, one for each slot, whichever worker is there when its time comes."""

import asyncio
from datetime import datetime, timedelta

from rowlock import Rowlock, current_job

app = Rowlock()
slots: asyncio.Queue[datetime | None] = asyncio.Queue()


@app.task.every(timedelta(seconds=1), name="tick", overlap="allow")
async def tick() -> None:
    await slots.put(current_job().slot)  # the time to work for, however late it runs


@app.task.every("0 9 * * MON-FRI", tz="Europe/Paris", jitter=timedelta(seconds=30))
async def report(region: str = "all") -> str:
    return f"report on {region}, for {current_job().schedule}"


async def main() -> None:
    async with app, app.worker():
        first, second = await slots.get(), await slots.get()
        print("each slot has one job:", first != second)

        # What an operator says outlives every deploy.
        await app.schedules.apause("tick", why="too loud", by="ann")
        await app.schedules.aedit("schedules.report", args={"region": "north"}, by="ann")
        for schedule in await app.schedules.alist():
            print(f"{schedule.name}: paused {schedule.is_paused}, edited {schedule.is_edited}")

        job = await app.schedules.arun_now("schedules.report")  # beside its slots
        print(await job.aresult())

        # Some schedules are data: one for each customer, say.
        added = await app.schedules.aadd("north", report.bind("north"), "0 6 * * *", tz="Asia/Tokyo")
        print(f"north next runs at {added.next_at:%H:%M} UTC")
        await app.schedules.aremove("north")


if __name__ == "__main__":
    asyncio.run(main())
