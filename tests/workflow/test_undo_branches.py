"""What branches that run at once have registered is undone once each, in whatever order a replay comes to it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from rowlock import Context, Retry, Rowlock
from tests.rows import Db
from tests.worker.working import ended, work_off

AT_ONCE = Retry(attempts=3, base=timedelta(0), jitter=0)


def test_a_replay_that_registers_in_another_order_undoes_each_of_them_once(app: Rowlock, db: Db) -> None:
    second_is_done = asyncio.Event()
    released: list[str] = []
    tried: list[str] = []

    async def reserve(item: str) -> None:
        if item == "oar":
            await second_is_done.wait()  # live, the second branch comes first; in a replay it does not
        else:
            second_is_done.set()

    def release(item: str) -> None:
        tried.append(item)
        if len(tried) == 1:
            raise ConnectionError("once more, after a replay")
        released.append(item)

    @app.workflow(name="shop.checkout", retry=AT_ONCE, fails_on=ValueError)
    async def checkout(ctx: Context) -> None:
        async def one(item: str) -> None:
            await ctx.step(reserve, item)
            ctx.undo(release, item)

        await asyncio.gather(one("oar"), one("rowlock"))
        raise ValueError("no van")

    checkout.enqueue()
    work_off(app, db)

    assert ended(db) == [("shop.checkout", "failed", "raised", 1)]
    assert sorted(released) == ["oar", "rowlock"]
