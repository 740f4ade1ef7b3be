"""Fan-out: a workflow gives each file to a child, a job of its own, and puts their results together."""

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rowlock import Context, Retry, Rowlock
from rowlock.errors import ChildFailed

app = Rowlock()
running: list[str] = []
at_once: list[int] = []


@app.task(queue="files", retry=Retry.none())
def count_words(path: str) -> int:
    running.append(path)
    at_once.append(len(running))
    time.sleep(0.01)
    running.remove(path)
    return len(Path(path).read_text(encoding="utf-8").split())


def list_files(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).iterdir())


@app.workflow
async def count_all(ctx: Context, folder: str) -> dict[str, int]:
    paths = await ctx.step(list_files, folder)  # what is there may change: it is looked at once
    counts = await ctx.map([count_words.bind(path) for path in paths], concurrency=4, return_exceptions=True)
    ctx.state["unread"] = [count.error_type for count in counts if isinstance(count, ChildFailed)]
    return {Path(path).name: count for path, count in zip(paths, counts, strict=True) if isinstance(count, int)}


async def main(folder: str) -> None:
    async with app, app.worker(queues=["files", "default"]):
        job = await count_all.aenqueue(folder)
        counts = await job.aresult()
        print(f"{sum(counts.values())} words in {len(counts)} files")
        print("not read:", (await job.arecord()).workflow_state["unread"])
    assert max(at_once) <= 4


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for number in range(10):
            Path(folder, f"{number}.txt").write_text("row " * number, encoding="utf-8")
        Path(folder, "boat.png").write_bytes(b"\xff")
        asyncio.run(main(folder))
