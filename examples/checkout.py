"""Checkout: each step is remembered, and when a later one fails, what was done is undone, the latest first."""

import asyncio
from datetime import timedelta

from rowlock import Context, Retry, Rowlock
from rowlock.errors import JobFailed

app = Rowlock()
stock, payments = {"oar": 2}, dict[str, int]()


def reserve(item: str, count: int) -> None:
    stock[item] -= count
    print(f"{item}: {stock[item]} on the shelf")


async def charge(order: int, key: str) -> str:
    payments[key] = order  # the bank keeps one payment for each key, however often it is asked
    return f"receipt {order}"


async def refund(order: int, key: str) -> None:
    print(f"order {payments.pop(key, order)} refunded")


async def ship(order: int) -> None:
    if order == 2:
        raise ConnectionError("no van today")


@app.workflow(retry=Retry(attempts=2, base=timedelta(milliseconds=10)))
async def checkout(ctx: Context, order: int) -> str:
    await ctx.step(reserve, "oar", 1)
    ctx.undo(reserve, "oar", -1)  # after the step: what was not taken must not be put back
    key = ctx.idempotency_key
    ctx.undo(refund, order, key)  # before it: if the worker dies, nobody knows, and to refund nothing is harmless
    receipt = await ctx.step(charge, order, key)
    await ctx.step(ship, order)
    return receipt


async def main() -> None:
    async with app, app.worker():
        print(await (await checkout.using(key="order:1").aenqueue(1)).aresult())
        again = await checkout.using(key="order:1").aenqueue(1)  # finds the first, although it has ended
        print("started once more:", again.created)
        try:
            await (await checkout.using(key="order:2").aenqueue(2)).aresult()
        except JobFailed as error:
            print(f"order 2: {error.message}")
    assert (stock, list(payments.values())) == ({"oar": 1}, [1])


if __name__ == "__main__":
    asyncio.run(main())
