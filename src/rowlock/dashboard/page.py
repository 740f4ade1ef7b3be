"""A page: what its address may ask, and what it then shows. The same values are HTML, JSON and a live stream."""

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
    """What an address, or a form, says: its fields by name, each checked. What nobody asked about is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


A = TypeVar("A", bound=Params)


class Redirect(HTTPException):
    """What was asked for is at another address: `to`, a path of the dashboard's own with what it asks."""

    def __init__(self, to: str) -> None:
        super().__init__(303, "it is elsewhere")
        self.to = to


@dataclass(frozen=True, slots=True)
class Page(Generic[A]):
    """A page at `path`, whose `{names}` are fields of `asked` too; `look` answers what its template shows.

    `shows` is the type of that answer, which is the JSON of /api + `path`. While somebody watches, it is looked at anew
    `every` so often.
    """

    name: str  # of its template, and in the navigation
    path: str
    params: type[A]
    shows: type[Any]
    load: Callable[[RequestContext, A], Awaitable[Any]]
    says: str  # what it shows, in a sentence: for the API's description
    every: timedelta = timedelta(seconds=2)


def read_params(params: type[A], said: QueryParams, path: Mapping[str, Any]) -> A:
    """What is asked; of a field that may be several, all that were said. An empty field of a form says nothing.

    A field that is a mapping holds what was said under its name and a dot: `answers.note`.
    """
    found: dict[str, Any] = {}
    for name, field in params.model_fields.items():
        if get_origin(field.annotation) is dict:
            inside = {key.removeprefix(f"{name}."): said.getlist(key) for key in said if key.startswith(f"{name}.")}
            found |= {name: inside} if inside else {}
            continue
        given = [text for text in said.getlist(name) if text.strip()]
        if given:
            found[name] = given if _is_several(field.annotation) else given[-1]
    return params.model_validate(found | dict(path))


def check_fields(params: type[Params], said: Iterable[str]) -> None:
    """Refuse what an action does not know: with `sate` for `state` it would mean every job."""
    known = params.model_fields
    inside = tuple(f"{name}." for name, field in known.items() if get_origin(field.annotation) is dict)
    for name in said:
        if name not in known and name != "csrf" and not name.startswith(inside):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"use {', '.join(known)}"
            raise HTTPException(400, f"there is no field {shown(name)}; {hint} Nothing was changed")


def _is_several(annotation: object) -> bool:
    kinds = (annotation, *get_args(annotation))
    return any(get_origin(kind) in (list, tuple, set, frozenset) for kind in kinds)
