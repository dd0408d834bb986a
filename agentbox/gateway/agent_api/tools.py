"""What may be called, by name, with the shape of its arguments. A slot method `bead.claim` is the tool `bead/claim`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Schema = Mapping[str, Any]
TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
TABLE: Final[Schema] = {"type": "object"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
ANY: Final[Schema] = {}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """`path`, `query` and `body` say where the API's route wants each argument; `special` names a way of its own."""

    name: str
    summary: str
    route: str = ""
    path: tuple[str, ...] = ()
    query: Mapping[str, Schema] = field(default_factory=dict)
    body: Mapping[str, Schema] | None = None
    required: tuple[str, ...] = ()
    custom: str = ""

    @property
    def method(self) -> str:
        """Its name in JSON-RPC."""
        return self.name.replace("/", ".")

    @property
    def arguments(self) -> dict[str, Schema]:
        """All that it takes."""
        return {**dict.fromkeys(self.path, TEXT), **self.query, **(self.body or {})}

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": self.arguments,
            "required": [*self.path, *self.required],
            "additionalProperties": False,
        }


_PAGE: Final = {"limit": COUNT, "cursor": TEXT}
_LEASE: Final = {"lease_id": TEXT, "lease_s": COUNT}
_BEAD: Final = {
    "title": TEXT,
    "body": TEXT,
    "priority": {"type": "integer"},
    "tags": TEXTS,
    "data": TABLE,
    "dedup_key": TEXT,
    "not_before": TEXT,
    "every": TEXT,
    "overlap": TEXT,
    "max_attempts": COUNT,
}

TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="bead/create",
        summary="A new bead: an epic, or with parent_id one below a bead of yours. The tag for:<agent> gives it to agents of that name.",
        body={**_BEAD, "parent_id": TEXT},
        required=("title",),
        custom="create_bead",
    ),
    Tool(name="bead/show", summary="One bead of yours.", route="show_bead", path=("id",)),
    Tool(
        name="bead/list",
        summary="Beads that you made; with parent_id those below a bead of yours; with tag or assignee those given to you.",
        route="list_beads",
        query={
            "status": TEXT,
            "kind": TEXT,
            "parent_id": TEXT,
            "tag": TEXT,
            "assignee": TEXT,
            "creator": TEXT,
            **_PAGE,
        },
    ),
    Tool(
        name="bead/ready",
        summary="Beads of yours that may be claimed now.",
        route="ready_beads",
        query={"parent_id": TEXT, **_PAGE},
    ),
    Tool(
        name="bead/claim",
        summary="Takes a lease on a bead of yours; the answer has the lease_id.",
        route="claim",
        path=("id",),
        body=_LEASE,
        custom="lease",
    ),
    Tool(
        name="bead/claim_next",
        summary="Takes a lease on the first ready bead that was given to you, or that is below parent_id; null when there is none.",
        route="claim_next",
        body={**_LEASE, "parent_id": TEXT, "tags": TEXTS},
        custom="lease",
    ),
    Tool(
        name="bead/heartbeat",
        summary="Extends a lease.",
        route="heartbeat",
        path=("id",),
        body=_LEASE,
        required=("lease_id",),
    ),
    Tool(
        name="bead/release",
        summary="Gives a lease back.",
        route="release",
        path=("id",),
        body={"lease_id": TEXT, "delay_s": COUNT, "note": TEXT},
        required=("lease_id",),
    ),
    Tool(
        name="bead/close",
        summary="Closes a bead with outcome (done, failed, cancelled), note and result.",
        route="close_bead",
        path=("id",),
        body={"outcome": TEXT, "note": TEXT, "result": ANY, "lease_id": TEXT},
    ),
    Tool(
        name="bead/add_dep",
        summary="The bead waits for the blocker.",
        route="add_dep",
        path=("id", "blocker"),
    ),
    Tool(
        name="bead/remove_dep",
        summary="The bead waits for the blocker no more.",
        route="remove_dep",
        path=("id", "blocker"),
    ),
    Tool(
        name="pod/write",
        summary="Stores an object below your own container: content as text, or content_base64.",
        body={
            "content": TEXT,
            "content_base64": TEXT,
            "content_type": TEXT,
            "if_match": TEXT,
            "if_none_match": TEXT,
        },
        path=("path",),
        custom="write_pod",
    ),
    Tool(
        name="pod/read",
        summary="An object of yours: content where it is text, else content_base64.",
        path=("path",),
        custom="read_pod",
    ),
    Tool(
        name="pod/list",
        summary="The members of a container of yours; its path ends with a slash, and is empty for the whole.",
        body={"path": TEXT, **_PAGE},
        custom="list_pods",
    ),
    Tool(
        name="pod/delete",
        summary="Removes an object of yours, or an empty container.",
        path=("path",),
        body={"if_match": TEXT},
        custom="delete_pod",
    ),
    Tool(
        name="memory/store",
        summary="Stores an entry in your own namespace.",
        route="store_memory",
        path=("key",),
        body={"value": ANY, "text": TEXT, "metadata": TABLE, "ttl_s": COUNT},
        required=("value",),
    ),
    Tool(
        name="memory/retrieve",
        summary="One entry of yours.",
        route="retrieve_memory",
        path=("key",),
    ),
    Tool(
        name="memory/delete",
        summary="Removes an entry of yours.",
        route="delete_memory",
        path=("key",),
    ),
    Tool(
        name="memory/list",
        summary="Your entries in order of their keys.",
        route="list_memory",
        query={"prefix": TEXT, **_PAGE},
    ),
    Tool(
        name="memory/search",
        summary="Your entries that fit a query best: by meaning, by words, or by both (mode hybrid, vector, text).",
        route="search_memory",
        body={
            "query": TEXT,
            "limit": COUNT,
            "mode": TEXT,
            "flt": TABLE,
            "min_cosine": {"type": "number"},
        },
        required=("query",),
    ),
    Tool(
        name="event/append",
        summary="Appends an event of yours to the journal.",
        body={"type": TEXT, "data": TABLE, "subject": TEXT},
        required=("type",),
        custom="append_event",
    ),
    Tool(
        name="event/read",
        summary="Your own events after `since`.",
        route="read_events",
        query={"since": {"type": "integer"}, "limit": COUNT, "types": TEXT},
    ),
)
BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}
BY_METHOD: Final[Mapping[str, Tool]] = {tool.method: tool for tool in TOOLS}

AGENT_TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="agent/spawn",
        summary="Starts an agent that the manifest lets you start.",
        route="spawn",
        body={
            "name": TEXT,
            "labels": TABLE,
            "constraints": {"type": "array", "items": TABLE},
            "limits": TABLE,
            "input": TEXT,
        },
        required=("name",),
        custom="spawn",
    ),
    Tool(
        name="agent/list",
        summary="Agents that you started.",
        route="list_agents",
        query={"state": TEXT, "name": TEXT, **_PAGE},
    ),
    Tool(
        name="agent/status",
        summary="One agent that you started, or yourself.",
        route="get_agent",
        path=("id",),
    ),
    Tool(
        name="agent/terminate",
        summary="Ends an agent that you started.",
        path=("id",),
        body={"grace_s": {"type": "number"}},
        custom="terminate",
    ),
    Tool(
        name="agent/send",
        summary="Writes text to the stdin of an agent that you started.",
        path=("id",),
        body={"text": TEXT},
        required=("text",),
        custom="send",
    ),
    Tool(
        name="agent/recv",
        summary="Output of an agent that you started, after the cursor `since`.",
        path=("id",),
        body={"since": COUNT, "limit": COUNT},
        custom="recv",
    ),
)
BY_AGENT_METHOD: Final[Mapping[str, Tool]] = {tool.method: tool for tool in AGENT_TOOLS}
