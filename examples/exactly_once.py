"""Exactly once: what a handler writes and the end of its job are committed together, or not at all."""

import asyncio
import os
from datetime import timedelta

import psycopg

from rowlock import Retry, Rowlock, current_job

app = Rowlock()
TAKE = "update account set balance = balance - 10 returning balance"


@app.task(retry=Retry(attempts=3, base=timedelta(milliseconds=50)))
async def charge(order: int) -> int:
    async with current_job().transaction() as connection:
        row = await (await connection.execute(TAKE)).fetchone()
        assert row is not None
        print(f"order {order}, attempt {current_job().attempt}: {row[0]} would be left")
        if current_job().attempt == 1:
            raise ConnectionError("the network fails after the money was taken")
        return current_job().give_result(int(row[0]))


def open_account() -> None:
    with psycopg.connect(os.environ["ROWLOCK_URL"]) as connection:
        connection.execute("create table account (balance int)")
        connection.execute("insert into account values (100)")


async def main() -> None:
    await asyncio.to_thread(open_account)
    async with app, app.worker():
        for order in (1, 2):
            job = await charge.aenqueue(order)
            print(f"order {order}: {await job.aresult()} are left")


if __name__ == "__main__":
    asyncio.run(main())
