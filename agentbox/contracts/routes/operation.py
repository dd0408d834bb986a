"""One row per operation of a resource. Arguments, their types, bounds and defaults are those of the
method of the same name; `resource` joins the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentbox.core.frozen import frozen
from agentbox.core.records.wire import Record

Kind = Literal["read", "write", "stream", "socket"]


@dataclass(frozen=True)
class ArgumentPlacement:
    """How an argument is sent: `name` is its name there. `spread`: the members of the record are
    sent instead of it, some with another type than in the record. `principal`: may be absent over
    HTTP and is the caller then; agents never send it. `header`: sent as that header. `internal`:
    never sent.
    """

    name: str = ""
    spread: Mapping[str, Any] | None = None
    principal: bool = False
    header: str = ""
    internal: bool = False


def sent_as(name: str) -> ArgumentPlacement:
    """The argument has another name on the wire."""
    return ArgumentPlacement(name=name)


def spread(**annotations: Any) -> ArgumentPlacement:
    """The members of the argument, a record, are parameters of their own. `annotations` replace
    those of the record.
    """
    return ArgumentPlacement(spread=annotations)


def header(name: str) -> ArgumentPlacement:
    """The argument is a request header."""
    return ArgumentPlacement(header=name)


PRINCIPAL = ArgumentPlacement(principal=True)
INTERNAL = ArgumentPlacement(internal=True)


@frozen
class AgentAccess:
    """An operation that agents may call on what they own. `tool` is its name for agents; "": a tool
    of another shape calls it, or none. The tool has the operation's arguments, principals and those
    in `without` aside. Arguments in `optional` may be absent, because the function `custom` of the
    gateway adds them.
    """

    tool: str = ""
    summary: str = ""  # "": that of the operation
    without: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    custom: str = ""


WITHOUT_TOOL = AgentAccess()  # may be called, but is no tool by itself


def tool(name: str, summary: str = "", **more: Any) -> AgentAccess:
    """An operation that is a tool of agents."""
    return AgentAccess(tool=name, summary=summary, **more)


@frozen
class RequestMember:
    """One member of a request. `argument` is the parameter of the method that it belongs to, "" if
    there is none, and `record_field` its name in the record that is spread; `annotation` has type
    and bounds. `location` is path, query, body or header.
    """

    name: str
    annotation: Any
    argument: str = ""
    record_field: str = ""
    location: str = ""
    principal: bool = False
    required: bool = True
    default: Any = field(default=None, compare=False)


@frozen
class Operation:
    """`http` is "METHOD /path/{parameter}", "" for one that is not served over HTTP. `scope`: all
    are required; None is that of the resource for reading or writing, () is public. `route` is its
    name in OpenAPI where it differs from `name`. `body` names the request record, which is derived
    from the arguments unless a record is given; `extra` has members of it that are no arguments,
    `body_text` replaces the method's docstring as its description. `body_limit` is in bytes, None =
    `api.max_body`. `response` and `last` name records: by default that of the method's result; a
    stream ends with `last`. `deadline_s` limits a call of the slot, and clients wait as long;
    `deadline_from` is an argument whose value is added; if it is None, the grace period of agents.
    `redact` and `identifiers` are JSON pointers into the arguments (`*`: each item, `/**`: each
    string below, keys included).
    `audit`: a write is journalled after its effect; `intent`: the type of the event journalled
    before it. `rpc` is its name over the JSON-RPC of agent-host, "" for one that is not served
    there; `caller` has the members of the caller that are read there. `capability`: only a peer
    with it has the operation.
    """

    name: str
    kind: Kind
    summary: str = ""
    http: str = ""
    scope: tuple[str, ...] | None = None
    route: str = ""
    statuses: tuple[int, ...] = (200,)
    headers: tuple[str, ...] = ()
    body: str | type[Record] = ""
    body_text: str = ""
    body_limit: int | None = None
    extra: tuple[RequestMember, ...] = ()
    response: str | None = None
    last: str = ""
    media: Literal["json", "any"] = "json"
    listener: Literal["api", "metrics"] = "api"
    agent: AgentAccess | None = None
    deadline_s: float = 5
    deadline_from: str = ""
    idempotent: bool = False
    audit: bool = False
    intent: str = ""
    redact: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    rpc: str = ""
    caller: tuple[str, ...] = ()
    capability: str = ""

    @property
    def method(self) -> str:
        """The HTTP method; "" if it is not served over HTTP."""
        return self.http.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path with its parameters."""
        return self.http.partition(" ")[2]

    @property
    def is_stream(self) -> bool:
        """Whether it returns an iterator instead of a result."""
        return self.kind == "stream"


def read(name: str, http: str = "", summary: str = "", **more: Any) -> Operation:
    """An operation without an effect, which may be repeated."""
    return Operation(
        name=name, kind="read", http=http, summary=summary, **{"idempotent": True, **more}
    )


def stream(name: str, http: str = "", summary: str = "", **more: Any) -> Operation:
    """An operation that returns items until its reader leaves, as server-sent events over HTTP."""
    return Operation(
        name=name, kind="stream", http=http, summary=summary, **{"idempotent": True, **more}
    )


def write(name: str, http: str = "", summary: str = "", **more: Any) -> Operation:
    """An operation with an effect."""
    return Operation(name=name, kind="write", http=http, summary=summary, **more)
