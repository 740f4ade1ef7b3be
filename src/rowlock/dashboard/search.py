"""Search: the text of the search field as an id or as filter terms."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final
from uuid import UUID

from rowlock.dashboard.context import RequestContext
from rowlock.dashboard.filter_params import MOMENTS, NAMES
from rowlock.model.filter import STATES
from rowlock.store.stats.collect import collect_glance

MOST_TYPED: Final = 4_000
"""Characters of a search."""
_ALSO: Final = {"arg": "arg", "args": "arg", "argument": "arg", "id": "ids", "ids": "ids", "ended": "ended_after"}
_PREFIXES: Final = {name: name for name in (*NAMES, "state")} | _ALSO | {name: name for name in MOMENTS}
# ConnectionError, CardDeclined, OSError, Timeout: as types of errors are written, and keys seldom.
_ERROR: Final = re.compile(r"(?:\w+\.)*(?:[A-Z]\w*(?:Error|Exception|Timeout)|Timeout|(?:[A-Z][a-z0-9]+){2,})")
_SIMILAR: Final = 0.6
_MOST_NEAR: Final = 5
_SEVERAL: Final = ("state", "arg", "ids")
_MAX_AGE: Final = timedelta(seconds=30)  # a page is loaded every two, and names seldom come
_MOST_NAMES: Final = 500


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names of tasks and queues, from code and from the database: to suggest, and to tell one from the other."""

    tasks: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


async def known_names(context: RequestContext) -> KnownNames:
    """The names, at most half a minute old."""

    async def load() -> KnownNames:
        reader = context.reader
        stats = await reader.database.aconverse(collect_glance)
        declared = {task.spec.queue for task in reader.tasks}
        return KnownNames(
            tasks=tuple(sorted({*reader.tasks.names(), *stats.tasks}))[:_MOST_NAMES],
            queues=tuple(sorted({*declared, *stats.queues}))[:_MOST_NAMES],
        )

    return await context.cache.get("names", max_age=_MAX_AGE, load=load)


def read_id(typed: str) -> UUID | None:
    """The id, if only an id was typed."""
    try:
        return UUID(typed.strip())
    except ValueError:
        return None


def read_terms(typed: str, known: KnownNames) -> dict[str, Any]:
    """Terms such as `queue:mail error:Timeout order_id=17` as query parameters; repeatable ones are tuples."""
    found: dict[str, Any] = {}
    for term in split(typed):
        name, value = _read(term, known)
        found[name] = (*found.get(name, ()), value) if name in _SEVERAL else value
    return found


def split(typed: str) -> Iterator[str]:
    """The terms: runs without spaces, where those in quotes do not count, task:"a b"; and a JSON object, {"a": 1}.

    Each character is looked at once: with a regular expression, 5,000 quotes took a second.
    """
    last, begin, is_quoted, at = typed.rfind("}"), 0, False, 0
    closing = typed.rfind('"')
    while at < len(typed):
        sign = typed[at]
        if sign == "{" and at == begin and at < last:
            yield typed[at : last + 1]
            begin = at = last + 1
            continue
        if sign == '"':
            is_quoted = not is_quoted and at < closing
        elif sign == "\\" and is_quoted:
            at += 1  # whatever comes next is part of the quoted text
        elif sign.isspace() and not is_quoted:
            if begin < at:
                yield typed[begin:at]
            begin = at + 1
        at += 1
    if begin < len(typed):
        yield typed[begin:]


def _read(term: str, known: KnownNames) -> tuple[str, str]:
    prefix, colon, rest = term.partition(":")
    if colon and rest and prefix.lower() in _PREFIXES:
        kind, word = _PREFIXES[prefix.lower()], _bare(rest)
        return kind, _meant(word, {"task": known.tasks, "queue": known.queues}.get(kind, ()))
    name, equals, _ = term.partition("=")
    if term.startswith("{") or (equals and name and '"' not in name):
        return "arg", term
    return _guess(_bare(term), known)


def _guess(word: str, known: KnownNames) -> tuple[str, str]:
    """What a word alone means: an id, a state, a task or the end of one, a queue, an error, else a key."""
    if read_id(word) is not None:
        return "ids", word
    if word in STATES:
        return "state", word
    if word in known.tasks:
        return "task", word
    if word in known.queues:
        return "queue", word
    ending = [task for task in known.tasks if task.endswith(f".{word}")]
    if len(ending) == 1:
        return "task", ending[0]
    return ("error" if _ERROR.fullmatch(word) else "key"), word


def _meant(word: str, names: Collection[str]) -> str:
    """The one name that has this as its last part, or of which a part begins with it; else the word itself."""
    if word in names:
        return word
    ending = [name for name in names if name.endswith(f".{word}")]
    fits = ending or [name for name in names if name.startswith(word) or f".{word}" in name]
    return fits[0] if len(fits) == 1 else word


def near(word: str | None, names: Collection[str]) -> tuple[str, ...]:
    """Names that may have been meant by a word that is none: those that it is part of, then those that read like it."""
    if not word or word in names:
        return ()
    part = word.strip("*").lower()
    holding = [name for name in names if part and part in name.lower()]
    return tuple(dict.fromkeys([*holding, *get_close_matches(word, names, cutoff=_SIMILAR)]))[:_MOST_NEAR]


def _bare(text: str) -> str:
    """A text without the quotes around it."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(text))
        except ValueError:
            return text[1:-1]
    return text


def suggestions(known: KnownNames, states: Collection[str] = STATES) -> tuple[str, ...]:
    """What can be typed, to choose from."""
    tasks = (f"task:{_quoted(name)}" for name in known.tasks)
    queues = (f"queue:{_quoted(name)}" for name in known.queues)
    return (*queues, *tasks, *(f"state:{name}" for name in states))


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False) if re.search(r'[\s"]', name) else name
