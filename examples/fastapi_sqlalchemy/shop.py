"""A shop in FastAPI: an order and its job are one transaction, and the worker lives in the web process.

DATABASE_URL=postgresql://localhost/shop uvicorn shop:api
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID

from fastapi import FastAPI, HTTPException, Response
from pydantic import BaseModel
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from rowlock import Rowlock
from rowlock.errors import JobFailed, JobNotFound, ResultTimeout

URL = os.environ["DATABASE_URL"]
engine = create_async_engine(make_url(URL).set(drivername="postgresql+psycopg"))
Session = async_sessionmaker(engine, expire_on_commit=False)
jobs = Rowlock(URL)


class Table(DeclarativeBase):
    """What all tables have in common."""


class Order(Table):
    """Something that somebody wants."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    confirmed: Mapped[bool] = mapped_column(default=False)


@jobs.task(queue="mail")
async def confirm(order: int) -> str:
    """Confirm an order; done twice, it is done once."""
    async with Session.begin() as session:
        found = await session.get_one(Order, order)
        found.confirmed = True
        return f"one {found.item}, coming up"


@asynccontextmanager
async def lifespan(_api: FastAPI) -> AsyncIterator[None]:
    """A worker as long as the server runs; with many jobs, start `rowlock worker --app shop:jobs` elsewhere instead."""
    await jobs.amigrate()
    async with engine.begin() as connection:
        await connection.run_sync(Table.metadata.create_all)
    async with jobs, jobs.worker(queues=["mail", "default"]):
        yield
    await engine.dispose()


api = FastAPI(lifespan=lifespan)


class NewOrder(BaseModel):
    """What a customer sends."""

    item: str


@api.post("/orders", status_code=201)
async def place(new: NewOrder) -> dict[str, str]:
    """Take an order: it and its job are committed together, or neither is."""
    async with Session.begin() as session:
        order = Order(item=new.item)
        session.add(order)
        await session.flush()
        job = await confirm.using(connection=session).aenqueue(order.id)
    return {"order": str(order.id), "job": str(job.id)}


@api.get("/jobs/{job_id}")
async def result(job_id: UUID, response: Response) -> dict[str, str | None]:
    """What came of a job; waits a few seconds for it."""
    try:
        job = await jobs.jobs.aget(job_id)
    except JobNotFound as error:
        raise HTTPException(404, str(error)) from error
    try:
        return {"state": "succeeded", "result": await job.aresult(timedelta(seconds=5))}
    except ResultTimeout:
        response.status_code = 202
        return {"state": (await job.arecord()).state, "result": None}
    except JobFailed as error:
        return {"state": "failed", "result": str(error)}
