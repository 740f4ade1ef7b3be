"""A shop in Flask: an order and its job are one transaction of the request's session.

DATABASE_URL=postgresql://localhost/shop flask --app shop run, and beside it: rowlock worker --app shop:jobs
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask, request
from flask.typing import ResponseReturnValue
from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, scoped_session, sessionmaker

from rowlock import Rowlock
from rowlock.types import CurrentJob

URL = os.environ["DATABASE_URL"]
engine = create_engine(make_url(URL).set(drivername="postgresql+psycopg"))
session = scoped_session(sessionmaker(engine))  # as Flask-SQLAlchemy's db.session
jobs = Rowlock(URL, connection=lambda: session)  # every enqueue joins the session's transaction
web = Flask(__name__)


class Table(DeclarativeBase):
    """What all tables have in common."""


class Order(Table):
    """Something that somebody wants."""

    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    confirmed: Mapped[bool] = mapped_column(default=False)


@jobs.task(queue="mail")
def confirm(order: int) -> str:
    """Confirm an order; done twice, it is done once."""
    found = session.get_one(Order, order)
    found.confirmed = True
    return f"one {found.item}, coming up"


@jobs.around
@contextmanager
def transaction(_job: CurrentJob) -> Iterator[None]:
    """Each attempt has the session of its thread, as each request has; what it enqueues is committed with it, too."""
    try:
        yield
        session.commit()
    finally:
        session.remove()


@web.post("/orders")
def place() -> ResponseReturnValue:
    """Take an order: it and its job are committed together, or neither is."""
    order = Order(item=request.form["item"])
    session.add(order)
    session.flush()
    job = confirm.enqueue(order.id)
    session.commit()
    return {"order": order.id, "job": str(job.id)}, 201


@web.teardown_appcontext
def forget(_error: BaseException | None) -> None:
    """What was not committed is rolled back, and its jobs with it."""
    session.remove()


@web.cli.command("migrate")
def migrate() -> None:
    """Make the tables, ours and Rowlock's."""
    Table.metadata.create_all(engine)
    jobs.migrate()
