"""Operating: find jobs by what they have in common, see what a verb would do, do it, and read who did it."""

import asyncio
from contextlib import suppress

from rowlock import Filter, Retry, Rowlock
from rowlock.errors import JobFailed

app = Rowlock()
partner_is_up = False


@app.task(retry=Retry.none())
async def call_partner(order: int) -> str:
    if not partner_is_up:
        raise ConnectionError("partner is down")
    return f"order {order} delivered"


async def main() -> None:
    global partner_is_up  # noqa: PLW0603  the world outside
    async with app:
        jobs = await app.aenqueue_many(call_partner.using(tags=["spring"]).bind(order) for order in range(3))
        async with app.worker():
            for job in jobs:
                with suppress(JobFailed):
                    await job.aresult()

        partner_is_up = True
        lost = Filter(state="failed", error="ConnectionError", tag="spring", args={"order": 2})
        preview = await app.jobs.apreview("retry", lost)
        print(f"would {preview.verb} {preview.count} of {dict(preview.tasks)}")
        done = await app.jobs.aretry(lost, by="ann", why="the partner is back")
        print(f"{done.changed} retried")

        async with app.worker():
            print(await jobs[2].aresult())
        event = (await app.jobs.aevents(jobs[2].id))[0]
        print(f"{event.kind} by {event.actor}: {event.details['why']}")


if __name__ == "__main__":
    asyncio.run(main())
