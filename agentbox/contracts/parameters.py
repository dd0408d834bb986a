"""JSON Schemas of path, query and header parameters, as used in OpenAPI."""

from collections.abc import Mapping
from typing import Any, get_args

from agentbox.adapters.memory.checks import NAMESPACE
from agentbox.adapters.memory.filters import SCHEMA as FILTER
from agentbox.api.http.request import IDEMPOTENCY_KEY, MAX_CURSOR, MAX_GENERATION, MAX_GRACE
from agentbox.contracts.beads import LIMIT, Kind, Status
from agentbox.contracts.events import LIMIT as EVENTS_LIMIT
from agentbox.contracts.orchestrator import AgentState

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
_SEGMENT: Schema = {"type": "string", "minLength": 1}
_ID: Schema = {"type": "string", "format": "uuid"}
_BOOLEAN: Schema = {"type": "boolean"}
_CURSOR: Schema = {
    "type": "string",
    "description": "`next_cursor` of an earlier page of this listing; opaque.",
}

_PATH: Mapping[str, Schema] = {
    "id": _ID,
    "agent_id": _ID,
    "blocker": {"type": "string", "minLength": 1, "pattern": r"^(?!\.{1,2}$)"},
    "ns": {"type": "string", "pattern": NAMESPACE},
    "key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 512,
        "description": "A `/` within it is sent as `%2F`.",
    },
    "seq": {"type": "string", "pattern": "^[0-9]+$"},
    # OpenAPI has no parameter of several segments: this schema applies to each segment.
    "path": {
        "type": "string",
        "maxLength": 255,
        "pattern": r"^[^/\\\x00-\x1f\x7f]+$",
        "description": "One segment here; the API accepts any number, separated by `/`. "
        "A path that ends with `/` is a container.",
    },
}
_QUERY: Mapping[str, Schema] = {
    "limit": {"type": "integer", "minimum": LIMIT[0], "maximum": LIMIT[1]},
    "cursor": _CURSOR,
    "status": {"type": "string", "enum": list(get_args(Status))},
    "kind": {"type": "string", "enum": list(get_args(Kind))},
    "state": {"type": "string", "enum": list(get_args(AgentState))},
    "at": {"type": "integer", "minimum": 0, "maximum": MAX_CURSOR},
    "follow": _BOOLEAN,
    "legacy": _BOOLEAN,
    "since": {"type": "integer", "minimum": 0, "maximum": MAX_CURSOR},
    "namespace": {"type": "string", "pattern": NAMESPACE},
    "generation": {"type": "integer", "minimum": 0, "maximum": MAX_GENERATION},
    "grace_s": {"type": "number", "minimum": 0, "maximum": MAX_GRACE},
}
_ROUTE_OVERRIDES: Mapping[tuple[str, str], Schema] = {
    ("show_review", "limit"): {"type": "integer", "minimum": 1, "maximum": 1_000},
    ("event_delivery", "limit"): {"type": "integer", "minimum": 0, "maximum": EVENTS_LIMIT[1]},
    ("read_events", "limit"): {
        "type": "integer",
        "minimum": EVENTS_LIMIT[0],
        "maximum": EVENTS_LIMIT[1],
    },
    ("read_events", "since"): {"type": "integer", "minimum": -1, "maximum": MAX_CURSOR},
    ("stream_events", "since"): {"type": "integer", "minimum": -1, "maximum": MAX_CURSOR},
}
_HEADERS: Mapping[str, Schema] = {
    "Idempotency-Key": {"type": "string", "pattern": IDEMPOTENCY_KEY},
    "Last-Event-ID": {"type": "string", "pattern": "^[0-9]+$"},
}
JSON_PARAMETERS = {"filter": FILTER}  # query parameters whose value is a JSON document
REQUIRED = frozenset(
    {("terminate_agent", "generation"), ("attach_agent", "generation")}
)  # required query parameters


def path_schema(name: str) -> Schema:
    """The schema of a path segment; by default any that is not empty."""
    return _PATH.get(name, _SEGMENT)


def query_schema(route: str, name: str) -> Schema:
    """The schema of a query parameter."""
    return _ROUTE_OVERRIDES.get((route, name), _QUERY.get(name, TEXT))


def header_schema(name: str) -> Schema:
    """The schema of a request header."""
    return _HEADERS.get(name, TEXT)
