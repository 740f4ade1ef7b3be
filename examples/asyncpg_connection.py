"""asyncpg: the order and its job are one transaction of your connection, or of one from your pool."""

import asyncio
import os

import asyncpg

from rowlock import Rowlock

app = Rowlock()


@app.task
async def confirm(order: int) -> str:
    return f"order {order} confirmed"


async def main() -> None:
    async with app, asyncpg.create_pool(os.environ["ROWLOCK_URL"], min_size=1) as pool, pool.acquire() as connection:
        await connection.execute("create table orders (id serial primary key)")

        rolled_back = connection.transaction()
        await rolled_back.start()
        order = await connection.fetchval("insert into orders default values returning id")
        await confirm.using(connection=connection).aenqueue(order)
        await rolled_back.rollback()
        print(f"order {order} rolled back, and its job with it")

        async with connection.transaction():
            order = await connection.fetchval("insert into orders default values returning id")
            job = await confirm.using(connection=connection).aenqueue(order)
        async with app.worker():
            print(await job.aresult())


if __name__ == "__main__":
    asyncio.run(main())
