"""What the shop's database says of a job, read past the app: while Playwright runs its loop, sync verbs are refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from psycopg import sql

from tests.rows import Db
from tests.waiting import until

_LIMIT = 120.0


def said(db: Db, job_id: UUID | str, column: str = "state") -> Any:  # noqa: ANN401  whatever a column holds
    """A column of a job, live or ended; None if there is no such job."""
    for table in ("jobs", "history"):
        text = sql.SQL("select to_json(found) from {} as found where id = %s").format(sql.Identifier("rowlock", table))
        if (found := db.execute(text, [job_id]).fetchone()) is not None:
            return found[0].get(column)
    return None


def fresh(word: str) -> str:
    """A name that nobody has used before."""
    return f"{word}-{uuid4().hex[:6]}"


def becomes(db: Db, job_id: UUID | str, state: str) -> None:
    """Wait until a job is in this state."""
    until(lambda: said(db, job_id) == state, what=f"job {job_id} {state}", limit=_LIMIT)
