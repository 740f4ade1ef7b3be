"""Page: its parameters and its data, shown as HTML, JSON and a live stream."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from rowlock.dashboard.context import RequestContext
from rowlock.model.names import shown


class Params(BaseModel):
    """The parameters of an address or a form, each checked. Unknown ones are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


A = TypeVar("A", bound=Params)


class Redirect(HTTPException):
    """The page is at another address: `to`, a path of this dashboard with its query."""

    def __init__(self, to: str) -> None:
        super().__init__(303, "it is elsewhere")
        self.to = to


@dataclass(frozen=True, slots=True)
class DashboardPage(Generic[A]):
    """A page at `path`, whose `{names}` are fields of `params` too; `load` returns the data that its template shows.

    The navigation has an entry for each page that is its own `nav`; others stand under the entry of that name, or none.

    `shows` is the type of that data, which is the JSON of /api + `path`. While somebody watches the page, it is loaded
    again `every` so often.
    """

    name: str  # of its template
    path: str
    params: type[A]
    shows: type[Any]
    load: Callable[[RequestContext, A], Awaitable[Any]]
    says: str  # what it shows, in a sentence: for the API's description
    every: timedelta = timedelta(seconds=2)
    nav: str | None = None
    key: str | None = None  # opens it, after g


def read_params(kind: type[A], given: QueryParams, path: Mapping[str, Any]) -> A:
    """The parameters given; all values of a field that may have several. Empty fields of a form are left out.

    A field that is a mapping holds the parameters under its name and a dot: `answers.note`.
    """
    found: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        if get_origin(field.annotation) is dict:
            inside = {key.removeprefix(f"{name}."): given.getlist(key) for key in given if key.startswith(f"{name}.")}
            found |= {name: inside} if inside else {}
            continue
        values = [text for text in given.getlist(name) if text.strip()]
        if values:
            found[name] = values if _is_several(field.annotation) else values[-1]
    return kind.model_validate(found | dict(path))


def check_fields(kind: type[Params], given: Iterable[str]) -> None:
    """Refuse fields that an action does not know: with `sate` for `state` it would mean every job."""
    known = kind.model_fields
    inside = tuple(f"{name}." for name, field in known.items() if get_origin(field.annotation) is dict)
    for name in given:
        if name not in known and name != "csrf" and not name.startswith(inside):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"use {', '.join(known)}"
            raise HTTPException(400, f"there is no field {shown(name)}; {hint} Nothing was changed")


def _is_several(annotation: object) -> bool:
    kinds = (annotation, *get_args(annotation))
    return any(get_origin(kind) in (list, tuple, set, frozenset) for kind in kinds)
