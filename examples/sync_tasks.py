"""Plain functions are tasks too: a worker runs them in threads, and plain code enqueues without a loop."""

import asyncio
import threading

from rowlock import Rowlock, current_job

app = Rowlock()
together = threading.Barrier(3)
done = threading.Barrier(4)
one_at_a_time = threading.Lock()


@app.task(queue="pictures")
def shrink(picture: str) -> int:
    together.wait()  # three at once, so each has a thread of its own
    beside = threading.current_thread() is not threading.main_thread()
    with one_at_a_time:
        print(f"{current_job().task} of {picture}, beside the main thread: {beside}")
    done.wait()
    return len(picture)


async def work() -> None:
    async with app.worker(queues="pictures", threads=3):
        await asyncio.to_thread(done.wait)


def main() -> None:
    with app:
        for picture in ("boat.png", "oar.png", "rowlock.png"):
            shrink.enqueue(picture)
    asyncio.run(work())
    print("done")


if __name__ == "__main__":
    main()
