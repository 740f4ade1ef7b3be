"""ctx.idempotency_key: the same in every try of a step, and of no other step, whatever begins anew."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from rowlock import Context, Retry, Rowlock
from tests.rows import Db
from tests.worker.working import work_off

AT_ONCE = Retry(attempts=3, base=timedelta(0), jitter=0)


def test_every_try_of_a_step_has_the_same_key_and_every_step_another(app: Rowlock, db: Db) -> None:
    tried: list[tuple[str, str]] = []

    def call(name: str, key: str) -> None:
        tried.append((name, key))
        if [one for one, _ in tried].count(name) < 2:
            raise ConnectionError(name)

    @app.workflow(name="shop.checkout", retry=AT_ONCE)
    async def checkout(ctx: Context) -> None:
        await ctx.step(call, "first", ctx.idempotency_key)
        await ctx.step(call, "second", ctx.idempotency_key)
        await asyncio.gather(
            *(ctx.step(call, name, ctx.idempotency_key) for name in ("third", "fourth")),
        )

    checkout.enqueue()
    work_off(app, db)

    keys = {name: {key for one, key in tried if one == name} for name, _ in tried}
    assert len(tried) == 8
    assert [len(known) for known in keys.values()] == [1] * 4
    assert len(set.union(*keys.values())) == 4


def test_what_begins_anew_calls_the_outside_by_other_keys(app: Rowlock, db: Db) -> None:
    charged: list[str] = []
    drawn: list[float] = []

    @app.workflow(name="shop.subscription")
    async def subscription(ctx: Context, month: int) -> None:
        await ctx.step(charged.append, ctx.idempotency_key)
        drawn.append(ctx.random())
        if month < 3:
            ctx.restart(month + 1)

    subscription.enqueue(1)
    work_off(app, db)

    assert len(charged) == len(set(charged)) == 3
    assert len(set(drawn)) == 3
