"""Enqueue inside your own transaction: the job exists if, and only if, your rows do."""

import asyncio
import os

import psycopg

from rowlock import Rowlock

app = Rowlock()
confirmed = asyncio.Event()


@app.task
async def confirm(order: int) -> None:
    print(f"order {order} confirmed")
    confirmed.set()


def place(order: int, *, paid: bool) -> None:
    with psycopg.connect(os.environ["ROWLOCK_URL"]) as connection:
        connection.execute("create table if not exists orders (number integer)")
        connection.execute("insert into orders values (%s)", [order])
        confirm.using(connection=connection).enqueue(order)
        if not paid:
            connection.rollback()
        print(f"order {order} {'placed' if paid else 'rolled back, and its job with it'}")


async def main() -> None:
    await asyncio.to_thread(place, 1, paid=False)
    await asyncio.to_thread(place, 2, paid=True)
    async with app, app.worker():
        await confirmed.wait()


if __name__ == "__main__":
    asyncio.run(main())
