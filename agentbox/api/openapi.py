"""The route table as OpenAPI 3.1. `tests/golden/openapi.json` is its golden copy."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from agentbox import __version__
from agentbox.adapters.schema import Schemas
from agentbox.api.answers import NAMES
from agentbox.api.cloudevents import MEDIA_TYPES as CLOUD_TYPES
from agentbox.routes import ROUTES, Route

PROBLEM_TYPE = "application/problem+json"
STREAM_TYPE = "text/event-stream"
JSON_TYPE = "application/json"
# Bodies that are no record: bytes of any type, and a patch.
BYTES: Mapping[str, Mapping[str, Any]] = {
    "Body": {"*/*": {}},
    "JsonPatch": {"application/json-patch+json": {"schema": {"type": "array", "items": {"type": "object"}}}},
}


@cache
def document() -> Mapping[str, Any]:
    """The whole document, equal for equal tables and records."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        if route.listener == "api":
            paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, schemas)
    schemas.of(NAMES["Problem"])
    return {
        "openapi": "3.1.0",
        "info": {"title": "agentbox management API", "version": __version__, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


def _operation(route: Route, schemas: Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.handler.partition(".")[0]],
        "security": [{"token": list(route.scope)}] if route.scope else [],
        "responses": _responses(route, schemas),
    }
    if parameters := _parameters(route):
        operation["parameters"] = parameters
    if route.request:
        operation["requestBody"] = {"required": True, "content": _request(route, schemas)}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    text = {"type": "string"}
    found = [{"name": name, "in": "path", "required": True, "schema": text} for name in route.parameters]
    found += [{"name": name, "in": "query", "required": False, "schema": text} for name in route.query]
    headers = (*route.headers, "Last-Event-ID") if route.stream else route.headers
    return found + [{"name": name, "in": "header", "required": False, "schema": text} for name in headers]


def _request(route: Route, schemas: Schemas) -> dict[str, Any]:
    if route.media == "any":
        return dict(BYTES[route.request])
    content = {JSON_TYPE: {"schema": _schema(route.request, schemas)}}
    if route.name == "append_events":
        content |= {kind: {"schema": {"type": ["object", "array"]}} for kind in CLOUD_TYPES}
    return content


def _responses(route: Route, schemas: Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status in route.statuses:
        found[str(status)] = {"description": HTTPStatus(status).phrase, **_content(route, status, schemas)}
    problem = {"$ref": "#/components/schemas/Problem"}
    found["default"] = {"description": "A problem", "content": {PROBLEM_TYPE: {"schema": problem}}}
    return found


def _content(route: Route, status: int, schemas: Schemas) -> dict[str, Any]:
    if not route.response or status in (204, 304):
        return {}
    if status >= 400 and route.name != "ready":
        return {"content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    if route.media == "any":
        return {"content": dict(BYTES[route.response])}
    return {"content": {STREAM_TYPE if route.stream else JSON_TYPE: {"schema": _schema(route.response, schemas)}}}


def _schema(name: str, schemas: Schemas) -> dict[str, Any]:
    return {"type": "object"} if name == "object" else schemas.of(NAMES[name])
