"""The route table as OpenAPI 3.1. `tests/golden/openapi.json` is its golden copy."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from agentbox import __version__
from agentbox.api.endpoints.cloudevents import MEDIA_TYPES as CLOUD_TYPES
from agentbox.api.endpoints.cloudevents import SCHEMA as CLOUD_EVENT
from agentbox.api.http.request import IDEMPOTENCY_KEY
from agentbox.contracts.routes.operation import RequestMember
from agentbox.contracts.routes.records_by_name import RECORDS_BY_NAME
from agentbox.contracts.routes.registry import ROUTES
from agentbox.contracts.routes.resource import without_none
from agentbox.contracts.routes.route import Route
from agentbox.core.http.headers import REQUEST_ID
from agentbox.core.records.schema import Schemas

_POINTER = {"type": "string", "pattern": "^(/([^/~]|~[01])*)*$"}

# RFC 9110 renamed these (15.5), Python follows from 3.13 on; the document must not depend on the
# version.
_PHRASES: Final = {
    413: "Content Too Large",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


def _patch_operation(
    names: tuple[str, ...], member: str = "", schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An operation of a JSON Patch."""
    extra = {member: schema} if member else {}
    return {
        "properties": {"op": {"enum": list(names)}, "path": _POINTER, **extra},
        "required": ["op", "path", *extra],
    }


PROBLEM_TYPE = "application/problem+json"
STREAM_TYPE = "text/event-stream"
JSON_TYPE = "application/json"
# Bodies that are not records: bytes of any type, and a patch.
BYTES: Mapping[str, Mapping[str, Any]] = {
    "Body": {"*/*": {}},
    "JsonPatch": {
        "application/json-patch+json": {"schema": {"$ref": "#/components/schemas/JsonPatch"}}
    },
}
PATCH = {
    "type": "array",
    "description": "RFC 6902.",
    "items": {
        "type": "object",
        "oneOf": [
            _patch_operation(("add", "replace", "test"), "value", {}),
            _patch_operation(("move", "copy"), "from", _POINTER),
            _patch_operation(("remove",)),
        ],
    },
}
PROBLEM_HEADERS = (
    "Retry-After",
    "WWW-Authenticate",
    "Allow",
    "Accept-Patch",
)  # each only with a matching status
_VALIDATORS = ("ETag", "Last-Modified")
HEADERS: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("spawn", 201): ("Location",),
    ("write_pod", 201): _VALIDATORS,
    ("write_pod", 204): _VALIDATORS,
    ("patch_pod", 204): _VALIDATORS,
    ("read_pod", 200): (*_VALIDATORS, "Accept-Ranges", "Accept-Patch", "Link"),
    ("read_pod", 304): _VALIDATORS,
    ("read_pod", 206): (*_VALIDATORS, "Content-Range", "Link"),
    ("options_pod", 204): ("Allow", "Accept-Put", "Accept-Patch"),
}


_TEXT: Final = {"type": "string"}
_HEADERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Idempotency-Key": {"type": "string", "pattern": IDEMPOTENCY_KEY},
    "Last-Event-ID": {"type": "string", "pattern": "^[0-9]+$"},
}


@cache
def document() -> Mapping[str, Any]:
    """The complete document; deterministic for equal tables and records."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        if route.listener == "api":
            paths.setdefault(route.template, {})[route.method.lower()] = _operation(route, schemas)
    schemas.schema_of(RECORDS_BY_NAME["Problem"])
    schemas.components["Problem"]["additionalProperties"] = True
    schemas.components["JsonPatch"] = PATCH
    schemas.components["CloudEvent"] = CLOUD_EVENT
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agentbox management API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.components.items())),
            "headers": {
                "X-Request-Id": {
                    "required": True,
                    "schema": {"type": "string", "pattern": f"^{REQUEST_ID}$"},
                }
            },
            "responses": {
                "Problem": {
                    "description": "A problem",
                    "headers": _headers(PROBLEM_HEADERS),
                    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, schemas: Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.handler.partition(".")[0]],
        "security": [{"token": list(route.scope)}] if route.scope else [],
        "responses": _responses(route, schemas),
    }
    if parameters := _parameters(route, schemas):
        operation["parameters"] = parameters
    if route.request:
        operation["requestBody"] = {
            "required": route.request != "Body",
            "content": _request(route, schemas),
        }
    return operation


def _parameters(route: Route, schemas: Schemas) -> list[dict[str, Any]]:
    members = {member.name: member for member in route.members}
    parameters = [_parameter(members[name], schemas) for name in (*route.parameters, *route.query)]
    headers = (*route.headers, "Last-Event-ID") if route.stream else route.headers
    return parameters + [
        {"name": name, "in": "header", "required": False, "schema": _HEADERS.get(name, _TEXT)}
        for name in headers
    ]


def _parameter(member: RequestMember, schemas: Schemas) -> dict[str, Any]:
    """A list is one text, separated by commas; an object is a JSON document."""
    schema = schemas.schema_of(without_none(member.annotation))
    text = schema.pop("description", None)
    kind = schema.get("type")
    content = {"schema": _TEXT if kind == "array" else schema}
    return {
        "name": member.name,
        "in": member.location,
        "required": member.location == "path" or member.required,
        **({"content": {JSON_TYPE: content}} if kind == "object" else content),
        **({} if text is None else {"description": text}),
    }


def _request(route: Route, schemas: Schemas) -> dict[str, Any]:
    if route.media == "any":
        return dict(BYTES[route.request])
    content = {JSON_TYPE: {"schema": _schema(route.request, schemas)}}
    if route.name == "append_events":
        event_schema = {"$ref": "#/components/schemas/CloudEvent"}
        content |= {CLOUD_TYPES[0]: {"schema": event_schema}}
        content |= {
            CLOUD_TYPES[1]: {"schema": {"type": "array", "items": event_schema, "minItems": 1}}
        }
    return content


def _responses(route: Route, schemas: Schemas) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status in route.statuses:
        responses[str(status)] = {
            "description": _PHRASES.get(status) or HTTPStatus(status).phrase,
            "headers": _headers(HEADERS.get((route.name, status), ())),
            **_content(route, status, schemas),
        }
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    return responses


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    text = {"type": "string"}
    return {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}} | {
        name: {"schema": text} for name in names
    }


def _content(route: Route, status: int, schemas: Schemas) -> dict[str, Any]:
    if not route.response or status in (204, 304):
        return {}
    if status >= 400 and route.name != "ready":
        return {"content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    if route.media == "any":
        return {"content": dict(BYTES[route.response])}
    if route.stream:
        event_schemas = [_schema(name, schemas) for name in (route.response, route.last) if name]
        return {
            "content": {
                STREAM_TYPE: {
                    "schema": {"anyOf": [*event_schemas, {"$ref": "#/components/schemas/Problem"}]}
                }
            }
        }
    return {"content": {JSON_TYPE: {"schema": _schema(route.response, schemas)}}}


def _schema(name: str, schemas: Schemas) -> dict[str, Any]:
    return {"type": "object"} if name == "object" else schemas.schema_of(RECORDS_BY_NAME[name])
