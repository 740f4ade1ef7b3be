"""Rendering: templates and their filters, and the threads that run them."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import cache, partial
from hashlib import blake2s
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rowlock.dashboard.excerpt import Excerpt
from rowlock.model import formatting
from rowlock.model.formatting import typed_span
from rowlock.model.verb import VERBS

VERSION: Final = version("rowlock")
STATIC: Final = Path(__file__).parent / "static"
_INSTANT: Final = re.compile(r"(\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d))")
_MOST_THREADS: Final = 2  # they share one interpreter: more would only make each other wait

P = ParamSpec("P")
T = TypeVar("T")


class RenderThreads:
    """Threads for rendering, beside the event loop, which also belongs to the app that mounts the dashboard."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in one of the threads."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="rowlock-dashboard")
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *args, **kwargs))

    def close(self) -> None:
        """End the threads; the next `run` starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


@cache
def assets() -> str:
    """A hash of the static files, part of their addresses: browsers keep the files until it changes.

    It does not reveal the version: visitors who are not logged in load these files, too.
    """
    found = blake2s(VERSION.encode(), digest_size=8)
    for file in sorted(STATIC.iterdir()):
        found.update(file.read_bytes())
    return found.hexdigest()


@cache
def templates(*packages: str) -> Environment:
    """The templates of the dashboard, and of packages that add pages to it. All values are escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in ("rowlock.dashboard", *packages)]),
        autoescape=True,
        auto_reload=False,  # half of an edit, or of an upgrade, is no page
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "span": formatting.span,
        "instant": formatting.instant,
        "code": code,
        "size": formatting.size,
        "json": pretty,
        "short": short,
        "at": at,
        "exact": exact,
        "number": number,
        "ref": ref,
        "segment": segment,
        "shell": shlex.quote,
        "typed": typed_span,
    }
    environment.tests["excerpt"] = lambda value: isinstance(value, Excerpt)
    environment.globals |= {"count": formatting.count, "version": VERSION, "assets": assets(), "timedelta": timedelta}
    environment.globals |= {"VERBS": VERBS}
    return environment


def render_page(environment: Environment, name: str, shown: Mapping[str, Any]) -> str:
    """A whole page."""
    return environment.get_template(f"{name}.html").render(shown)


def render_main(environment: Environment, name: str, shown: Mapping[str, Any]) -> str:
    """The contents of a page's <main>, for a browser that has the rest already."""
    template = environment.get_template(f"{name}.html")
    return "".join(template.blocks["main"](template.new_context(dict(shown))))


def pretty(value: object) -> str:
    """A JSON value over several lines."""
    if isinstance(value, Excerpt):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def code(text: str) -> Markup:
    """A sentence of ours in which `commands` stand between backquotes, and instants as ISO 8601 has them."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else _timed(part) for number, part in enumerate(parts)
    )


def _timed(text: str) -> Markup:
    parts = _INSTANT.split(text)
    return Markup("").join(
        _exactly(part) if number % 2 else Markup("{}").format(part) for number, part in enumerate(parts)
    )


def _exactly(text: str) -> Markup:
    """What looks like an instant; in a message of somebody else's it may be none."""
    try:
        return exact(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return Markup("{}").format(text)


def exact(moment: datetime) -> Markup:
    """An instant to the second: in UTC, until our script writes it as the reader's clocks have it."""
    utc = formatting.instant(moment)
    return Markup('<time datetime="{}" data-exact>{} UTC</time>').format(utc, utc[:-1].replace("T", " "))


def short(job_id: object) -> str:
    """The end of an id: what tells ids of the same moment apart."""
    return f"…{str(job_id)[-8:]}"


def ref(name: str) -> str:
    """A name of any kind as the id of an element: the same for the same name."""
    return blake2s(name.encode(), digest_size=6).hexdigest()


def segment(name: str) -> str:
    """A name as one segment of an address, whatever is in it: browsers take `a/../b` apart."""
    return quote(name, safe="")


def number(value: float) -> str:
    """A number for people: 1,234 or 0.25."""
    return (
        f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2g}" if value < 10 else f"{value:,.1f}"
    )


def at(moment: datetime | None, now: datetime) -> Markup:
    """An instant, as far from now as it is; our script adds its exact time where the reader is, and in UTC."""
    if moment is None:
        return Markup("")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(), formatting.instant(moment), formatting.age(moment, now)
    )


def address(path: str, params: Mapping[str, Any] | None = None, **more: object) -> str:
    """A path with query parameters; those that are None, False or empty are left out."""
    given = {
        name: value for name, value in ({**(params or {}), **more}).items() if value not in (None, "", (), [], False)
    }
    return quote(path) + (f"?{urlencode(given, doseq=True)}" if given else "")
