"""SQLAlchemy: the order and its job are one transaction of the session, async or not."""

import asyncio
import os

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rowlock import Rowlock

app = Rowlock()
URL = make_url(os.environ["ROWLOCK_URL"]).set(drivername="postgresql+psycopg")
TABLE = text("create table orders (id serial primary key)")
INSERT = text("insert into orders default values returning id")


@app.task
def confirm(order: int) -> str:
    return f"order {order} confirmed"


def place() -> None:
    engine = create_engine(URL)
    with Session(engine) as session, session.begin():
        session.execute(TABLE)
        confirm.using(connection=session).enqueue(session.scalars(INSERT).one())
        session.rollback()
        print("rolled back: table, order and job")
    with Session(engine) as session, session.begin():
        session.execute(TABLE)
        confirm.using(connection=session).enqueue(session.scalars(INSERT).one())
    engine.dispose()


async def place_async() -> None:
    engine = create_async_engine(URL)
    async with AsyncSession(engine) as session, session.begin():
        job = await confirm.using(connection=session).aenqueue((await session.scalars(INSERT)).one())
    await engine.dispose()
    async with app, app.worker():
        print(await job.aresult())


if __name__ == "__main__":
    place()
    asyncio.run(place_async())
