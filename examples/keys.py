"""Keys: while a job with a key lives, asking again gives the same job; when it has ended, the key is free."""

import asyncio

from rowlock import Rowlock
from rowlock.errors import KeyTaken

app = Rowlock()
charged = asyncio.Event()


@app.task
async def charge(order: int) -> None:
    print(f"order {order} charged")
    charged.set()


@app.task
async def refund(order: int) -> None:
    print(f"order {order} refunded")


async def main() -> None:
    async with app:
        first = await charge.using(key="order:7").aenqueue(7)
        again = await charge.using(key="order:7").aenqueue(7)
        print(f"first: {first.created}, again: {again.created}, the same job: {again == first}")
        try:
            await refund.using(key="order:7").aenqueue(7)
        except KeyTaken:
            print("a key belongs to one task")
        async with app.worker():
            await charged.wait()
        later = await charge.using(key="order:7").aenqueue(7)
        print(f"later: {later.created}")


if __name__ == "__main__":
    asyncio.run(main())
