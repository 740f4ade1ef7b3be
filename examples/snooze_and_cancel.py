"""Other ends than return and error are raised: not now, and not at all."""

import asyncio
from datetime import timedelta

from rowlock import Cancel, Rowlock, Snooze, current_job

app = Rowlock()
ended = asyncio.Semaphore(0)
shop = {"open": False}


@app.task
async def deliver(parcel: int) -> None:
    if not shop["open"]:
        shop["open"] = True
        print(f"parcel {parcel}: closed, attempt {current_job().attempt} is not spent")
        raise Snooze(timedelta(milliseconds=50))
    print(f"parcel {parcel}: delivered in attempt {current_job().attempt}")
    ended.release()


@app.task
async def remind(user_id: int) -> None:
    print(f"user {user_id} has paid: nothing to remind of")
    ended.release()
    raise Cancel("paid meanwhile")


async def main() -> None:
    async with app, app.worker():
        await deliver.aenqueue(1)
        await ended.acquire()
        await remind.aenqueue(42)
        await ended.acquire()


if __name__ == "__main__":
    asyncio.run(main())
