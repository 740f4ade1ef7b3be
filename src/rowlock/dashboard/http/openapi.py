"""OpenAPI: the description of the API, made from the pages and actions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from rowlock.dashboard.action import Action
from rowlock.dashboard.page import DashboardPage
from rowlock.dashboard.render import VERSION

SIGNALS: Final = "/webhooks/signals"

_NAMED: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_SCHEMAS: Final = "#/components/schemas/"
_ERRORS: Final = {
    "BadRequest": (400, "What was asked makes no sense; the sentence says what."),
    "Unauthorized": (401, "Nobody is known by this token or session."),
    "Forbidden": (403, "It needs another role, this dashboard is read-only, or the form is not from it."),
    "NotFound": (404, "There is no such thing."),
    "Conflict": (
        409,
        "It cannot be done to what is there now, or more jobs match than were expected; the sentence says why.",
    ),
    "TooLarge": (413, "The body is over a million bytes."),
    "TooManyAttempts": (429, "Too many wrong tokens came from this address; wait a minute."),
    "Unavailable": (503, "The database does not respond, or not within two seconds."),
}
_OF_PAGES: Final = ("BadRequest", "Unauthorized", "Forbidden", "NotFound", "TooManyAttempts", "Unavailable")
_OF_SIGNALS: Final = ("BadRequest", "Unauthorized", "Forbidden", "NotFound", "Conflict", "TooLarge")

Json = dict[str, Any]


def description(pages: Sequence[DashboardPage[Any]], actions: Sequence[Action[Any]], *, root: str = "") -> Json:
    """The description at /api/openapi.json; durations are seconds."""
    schemas, definitions = _schemas(pages, actions)
    paths: dict[str, Json] = {}
    for page in pages:
        _path(paths, f"/api{page.path}")["get"] = _page(page, schemas, definitions)
    for action in actions:
        _path(paths, f"/api{action.path}")["post"] = _action(action, schemas, definitions)
    _path(paths, SIGNALS)["post"] = _signal()
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rowlock", "version": VERSION, "summary": "Jobs, workers, schedules and workflows."},
        "servers": [{"url": root or "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": {**definitions, "Error": _ERROR, "Did": _ACTION_RESULT, "Signal": _SIGNAL},
            "responses": {name: _failed(says) for name, (_, says) in _ERRORS.items()},
            "securitySchemes": _SECURITY,
        },
    }


class _Schemas(GenerateJsonSchema):
    """As the API writes them."""

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:  # noqa: ARG002  pydantic's name
        return {"type": "number", "description": "seconds"}


def _schemas(
    pages: Sequence[DashboardPage[Any]], actions: Sequence[Action[Any]]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Schemas by key, the data of pages (`PATH`) and the parameters of pages and actions (`PATH?`), and their parts."""
    results = [(page.path, "serialization", TypeAdapter(page.shows)) for page in pages]
    both: list[DashboardPage[Any] | Action[Any]] = [*pages, *actions]
    params = [(f"{one.path}?", "validation", TypeAdapter(one.params)) for one in both]
    schemas, shared = TypeAdapter.json_schemas(
        [*results, *params],  # type: ignore[list-item]  # their modes are known
        ref_template=f"{_SCHEMAS}{{model}}",
        schema_generator=_Schemas,
    )
    definitions: dict[str, Json] = shared.get("$defs", {})
    return {path: schema for (path, _mode), schema in schemas.items()}, definitions


def _path(paths: dict[str, Json], path: str) -> Json:
    return paths.setdefault(_NAMED.sub(r"{\1}", path), {})


def _page(page: DashboardPage[Any], schemas: dict[str, Json], definitions: dict[str, Json]) -> Json:
    return {
        "operationId": f"get_{_slug(page.path)}",
        "summary": page.says,
        "parameters": [*_parameters(page, schemas, definitions, with_query=True)],
        "responses": {"200": _response(page.says, schemas[page.path]), **_failures(_OF_PAGES)},
    }


def _action(action: Action[Any], schemas: dict[str, Json], definitions: dict[str, Json]) -> Json:
    params = _resolved(schemas[f"{action.path}?"], definitions)
    named = set(_NAMED.findall(action.path))
    body = {
        **{name: value for name, value in params.items() if name not in {"properties", "required"}},
        "properties": {name: value for name, value in params.get("properties", {}).items() if name not in named},
        "required": [name for name in params.get("required", []) if name not in named],
        "additionalProperties": False,
    }
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {
        "operationId": f"post_{_slug(action.path)}",
        "summary": action.says,
        "description": f"Needs the role {action.role}.",
        "parameters": [*_parameters(action, schemas, definitions, with_query=False)],
        "requestBody": {"required": bool(body["required"]), "content": {kind: {"schema": body} for kind in kinds}},
        "responses": {
            "200": _response("What was done, in a sentence.", {"$ref": f"{_SCHEMAS}Did"}),
            **_failures(tuple(_ERRORS)),
        },
    }


def _parameters(
    one: DashboardPage[Any] | Action[Any], schemas: dict[str, Json], definitions: dict[str, Json], *, with_query: bool
) -> Iterator[Json]:
    params = _resolved(schemas[f"{one.path}?"], definitions)
    properties: dict[str, Json] = params.get("properties", {})
    named = _NAMED.findall(one.path)
    for name in named:
        yield {"name": name, "in": "path", "required": True, "schema": properties.get(name, {"type": "string"})}
    for name, schema in properties.items() if with_query else ():
        if name not in named:
            yield {"name": name, "in": "query", "required": name in params.get("required", []), "schema": schema}


def _resolved(schema: Json, definitions: dict[str, Json]) -> Json:
    reference = schema.get("$ref")
    return schema if reference is None else definitions[reference.removeprefix(_SCHEMAS)]


def _slug(path: str) -> str:
    return "_".join(re.findall(r"\w+", _NAMED.sub(r"\1", path))) or "overview"


def _response(says: str, schema: Json) -> Json:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _failures(names: Sequence[str]) -> Json:
    return {str(_ERRORS[name][0]): {"$ref": f"#/components/responses/{name}"} for name in names}


def _failed(says: str) -> Json:
    return _response(says, {"$ref": f"{_SCHEMAS}Error"})


def _signal() -> Json:
    header = {"in": "header", "required": True, "schema": {"type": "string"}}
    return {
        "operationId": "post_webhooks_signals",
        "summary": "Send a workflow a signal, signed after Standard Webhooks; the reply comes when it is committed.",
        "security": [{"signature": []}],
        "parameters": [{"name": name, **header} for name in ("webhook-id", "webhook-timestamp")],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": f"{_SCHEMAS}Signal"}}},
        },
        "responses": {
            "202": _response("It is stored.", _SAYS),
            "200": _response("It was stored before, by its webhook-id.", _SAYS),
            **_failures(_OF_SIGNALS),
        },
    }


_SAYS: Final[Json] = {"type": "object", "properties": {"says": {"type": "string"}}, "required": ["says"]}
_ERROR: Final[Json] = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "What is wrong, and what to do."}},
    "required": ["error"],
}
_ACTION_RESULT: Final[Json] = {
    "type": "object",
    "properties": {
        "says": {"type": "string", "description": "What was done."},
        "to": {"type": ["string", "null"], "description": "The path of the page that shows it."},
        "facts": {"description": "The same for programs."},
    },
    "required": ["says", "to", "facts"],
}
_SIGNAL: Final[Json] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "description": "The id or the key of a workflow."},
        "signal": {"type": "string"},
        "payload": {"description": "Any JSON value."},
    },
    "required": ["to", "signal"],
    "additionalProperties": False,
}
_SECURITY: Final[Json] = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of `rowlock dashboard token`."},
    "session": {"type": "apiKey", "in": "cookie", "name": "rowlock_session", "description": "A browser's, with CSRF."},
    "signature": {"type": "apiKey", "in": "header", "name": "webhook-signature", "description": "v1,BASE64."},
}
