"""A shop that has been open for a day: jobs in every state, workers, schedules, workflows, and minutes for charts.

`python -m tests.dashboard.scene` opens it in the dashboard, with three workers, until Ctrl-C.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import TupleRow

from rowlock import Filter, Rowlock
from rowlock.dashboard import Dashboard, Tokens
from rowlock.dashboard.access.tokens import new_token
from rowlock.dashboard.access.visitor import ROLES
from rowlock.dashboard.http.serve import listen, serve
from rowlock.db.address import find_address
from rowlock.db.embedded.server import EmbeddedPostgres
from rowlock.model.stats.histogram import bucket, pack
from tests.dashboard import shop
from tests.waiting import until

Db = psycopg.Connection[TupleRow]

# Task, queue, how many a second, and how many seconds each takes.
Counted = tuple[str, str, float, float]
_TASKS: tuple[Counted, ...] = (
    ("photos.resize", "default", 42.0, 0.08),
    ("mail.send_receipt", "mail", 18.0, 0.19),
    ("payments.charge", "payments", 9.0, 0.42),
    ("reports.nightly", "reports", 0.6, 4.0),
)


@contextmanager
def shop_on(url: str) -> Iterator[Rowlock]:
    """The shop's app, on this database for a while."""
    with shop.app.database.moved(lambda: find_address(url, None)):
        yield shop.app


def furnish(url: str) -> None:
    """Fill an empty database, without a worker: what waits, what is delayed, what somebody did."""
    with psycopg.connect(url, autocommit=True) as db:
        _minutes(db)
    with shop_on(url) as app:
        _enqueue(app)


def _enqueue(app: Rowlock) -> None:
    shop.resize.using(delay=timedelta(hours=3), priority=2, tags=["campaign:autumn"]).enqueue(901, 1280)
    app.enqueue_many(shop.resize.using(tags=["catalogue"]).bind(photo) for photo in range(40))
    app.enqueue_many(shop.charge.using(tags=["web"]).bind(order, 1900 + 37 * order) for order in range(1, 31))
    app.enqueue_many(
        shop.send_receipt.using(tags=["web"]).bind(order, f"customer{order}@example.com", busy=order % 11 == 0)
        for order in range(1, 31)
    )
    for name, rows in (("spring.csv", 120_000), ("sale.csv", 18_400), ("suppliers.csv", 52_000)):
        shop.import_file.enqueue(name, rows)
    for order, cents in ((101, 89_00), (102, 1_249_00), (104, 64_50), (105, 230_00), (106, 780_00)):
        shop.checkout.using(key=f"order:{order}").enqueue(order, order % 4 + 1, cents)
    app.enqueue("legacy.sync_crm", account=17)
    app.queues.pause("reports", why="the warehouse is being moved", by="ann", duration=timedelta(hours=4))
    app.tasks.pause("mail.weekly_digest", why="new template is not ready", by="ben")
    doomed = shop.resize.using(delay=timedelta(hours=1)).enqueue(902)
    app.jobs.cancel(Filter(ids=[doomed.id]), by="ben", why="photo was withdrawn")


def _minutes(db: Db) -> None:
    """A day of what workers would have counted: a tide of work, a bad hour, and now."""
    random, workers = Random(7), [uuid4(), uuid4(), uuid4()]
    rows = [
        row
        for ago in range(24 * 60)
        for counted in _TASKS
        if (row := _minute(random, random.choice(workers), ago, counted))
    ]
    with db.cursor() as cursor:
        [now] = cursor.execute("select date_trunc('minute', rowlock.now())").fetchone() or [None]
        cursor.executemany(
            """insert into rowlock.minutes (minute, worker, queue, task, claimed, succeeded, failed, cancelled, retried,
                   seconds, slowest, durations, waited, longest, waits)
               values (%s::timestamptz - make_interval(mins => %s), %s, %s, %s, %s, %s, %s, 0, %s, %s, %s, %s::numeric,
                   %s, %s, %s::numeric)""",
            [(now, *row) for row in rows],
        )


def _minute(random: Random, worker: UUID, ago: int, counted: Counted) -> tuple[object, ...] | None:
    task, queue, rate, seconds = counted
    tide = 1 + 0.45 * math.sin(ago / 190) + 0.2 * math.sin(ago / 37) + random.uniform(-0.12, 0.12)
    done = int(60 * rate * max(tide, 0.05))
    if not done:
        return None
    bad = 9 if 150 < ago < 190 else 1
    failed = sum(random.random() < 0.0009 * bad for _ in range(min(done, 900)))
    retried = failed * 2 + random.randrange(3)
    wait = 0.004 * (1 + max(0.0, math.sin(ago / 90))) * (14 if 150 < ago < 190 else 1)
    return (
        *(ago, worker, queue, task, done + retried, done - failed, failed, retried),
        *(done * seconds, seconds * 6, _spread(done, seconds)),
        *(done * wait, wait * 9, _spread(done, wait)),
    )


def _spread(count: int, middle: float) -> str:
    """Most of them near the middle, some a few times as long."""
    first = bucket(middle) - 1
    counts = [int(count * share) for share in (0.2, 0.45, 0.2, 0.1, 0.04, 0.01)]
    counts[1] += count - sum(counts)
    return pack([0] * first + counts)


@contextmanager
def workers(url: str, count: int = 3) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Real worker processes of the shop."""
    command = [sys.executable, "-m", "rowlock", "worker", "--app", "tests.dashboard.shop", "--url", url]
    queues = "default,mail,payments,orders,imports"
    started = [
        subprocess.Popen(
            [*command, "--queues", queues, "--slots", "12", "--grace", "1", "--parent", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(30)


def settled(url: str) -> None:
    """Wait until the workers have done what there is to do now, and three imports are under way."""
    query = b"""
        select not exists (
            select from rowlock.jobs where state = 'ready' and run_at <= rowlock.now() and queue <> 'reports'
        ) and 3 = (select count(*) from rowlock.jobs where state = 'running')
    """
    with psycopg.connect(url, autocommit=True) as db:
        until(lambda: db.execute(query).fetchone() == (True,), what="what the workers can do", limit=120)


def main() -> None:
    """Show it."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "pg"
        url = stack.enter_context(EmbeddedPostgres(folder)).url
        Rowlock(url).migrate()
        furnish(url)
        stack.enter_context(workers(url))
        app = stack.enter_context(shop_on(url))
        tokens = [new_token(role, role) for role in reversed(ROLES)]
        settled(url)
        listening = listen("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8790)
        links = [f"http://127.0.0.1:{listening.getsockname()[1]}/login#{token}" for token, _ in tokens]
        dashboard = Dashboard(app, auth=Tokens(line for _, line in tokens))
        # For whoever started us: the links of an admin, an operator and a viewer, and the database.
        serve(dashboard, listening, ready=lambda: print(*links, url, sep="\n", flush=True))  # noqa: T201


if __name__ == "__main__":
    main()
