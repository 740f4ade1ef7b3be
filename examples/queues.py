"""Several queues for one worker: strict, one after the other; or weighted, each in its turn."""

import asyncio

from rowlock import Rowlock

app = Rowlock()
done: list[str] = []
progress = asyncio.Condition()


@app.task
async def work(kind: str) -> None:
    async with progress:
        done.append(kind)
        progress.notify_all()


async def work_off(queues: list[str] | dict[str, float]) -> None:
    done.clear()
    calls = [work.using(queue=queue).bind(queue) for queue in ("reports", "mail", "reports", "mail")]
    await app.aenqueue_many(calls)
    async with app.worker(queues=queues, slots=1), progress:
        await progress.wait_for(lambda: len(done) == len(calls))


async def main() -> None:
    async with app:
        await work_off(["mail", "reports"])
        print(f"strict: {', '.join(done)}")
        await work_off({"mail": 3, "reports": 1})
        print(f"weighted, in some order: {', '.join(sorted(done))}")


if __name__ == "__main__":
    asyncio.run(main())
