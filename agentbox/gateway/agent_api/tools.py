"""The callable tools, with the schemas of their arguments. The slot method `bead.claim` is the tool
`bead/claim`."""

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
    """`path`, `query` and `body` place the arguments in the API request; `custom` names a function
    in `custom_tools`."""

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
        """The JSON-RPC method."""
        return self.name.replace("/", ".")

    @property
    def arguments(self) -> dict[str, Schema]:
        """All arguments with their schemas."""
        return {**dict.fromkeys(self.path, TEXT), **self.query, **(self.body or {})}

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
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
        summary="Creates a bead: an epic, or with parent_id a child of one of your beads. The "
        "tag for:<agent> assigns it to agents of that name.",
        body={**_BEAD, "parent_id": TEXT},
        required=("title",),
        custom="create_bead",
    ),
    Tool(name="bead/show", summary="Returns one of your beads.", route="show_bead", path=("id",)),
    Tool(
        name="bead/list",
        summary="Lists beads that you created; with parent_id the children of one of your "
        "beads; with tag or assignee those assigned to you.",
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
        summary="Lists your beads that can be claimed now.",
        route="ready_beads",
        query={"parent_id": TEXT, **_PAGE},
    ),
    Tool(
        name="bead/claim",
        summary="Leases one of your beads; the result has the lease_id.",
        route="claim",
        path=("id",),
        body=_LEASE,
        custom="lease",
    ),
    Tool(
        name="bead/claim_next",
        summary="Leases the first ready bead that is assigned to you or below parent_id; null "
        "if there is none.",
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
        summary="Releases a lease.",
        route="release",
        path=("id",),
        body={"lease_id": TEXT, "delay_s": COUNT, "note": TEXT},
        required=("lease_id",),
    ),
    Tool(
        name="bead/close",
        summary="Closes a bead with an outcome (done, failed, cancelled), note and result.",
        route="close_bead",
        path=("id",),
        body={"outcome": TEXT, "note": TEXT, "result": ANY, "lease_id": TEXT},
    ),
    Tool(
        name="bead/add_dep",
        summary="Makes the bead wait for the blocker.",
        route="add_dep",
        path=("id", "blocker"),
    ),
    Tool(
        name="bead/remove_dep",
        summary="Removes the dependency on the blocker.",
        route="remove_dep",
        path=("id", "blocker"),
    ),
    Tool(
        name="pod/write",
        summary="Stores an object in your container: content as text, or content_base64.",
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
        summary="Returns one of your objects: text as content, otherwise content_base64.",
        path=("path",),
        custom="read_pod",
    ),
    Tool(
        name="pod/list",
        summary="Lists the members of one of your containers; its path ends with a slash, or "
        "is empty for all.",
        body={"path": TEXT, **_PAGE},
        custom="list_pods",
    ),
    Tool(
        name="pod/delete",
        summary="Deletes one of your objects, or an empty container.",
        path=("path",),
        body={"if_match": TEXT},
        custom="delete_pod",
    ),
    Tool(
        name="memory/store",
        summary="Stores an entry in your namespace.",
        route="store_memory",
        path=("key",),
        body={"value": ANY, "text": TEXT, "metadata": TABLE, "ttl_s": COUNT},
        required=("value",),
    ),
    Tool(
        name="memory/retrieve",
        summary="Returns one of your entries.",
        route="retrieve_memory",
        path=("key",),
    ),
    Tool(
        name="memory/delete",
        summary="Deletes one of your entries.",
        route="delete_memory",
        path=("key",),
    ),
    Tool(
        name="memory/list",
        summary="Lists your entries by key.",
        route="list_memory",
        query={"prefix": TEXT, **_PAGE},
    ),
    Tool(
        name="memory/search",
        summary="Searches your entries: by meaning, by words, or both (mode hybrid, vector, text).",
        route="search_memory",
        body={
            "query": TEXT,
            "limit": COUNT,
            "mode": TEXT,
            "filter": TABLE,
            "min_cosine": {"type": "number"},
        },
        required=("query",),
    ),
    Tool(
        name="event/append",
        summary="Appends one of your events to the journal.",
        body={"type": TEXT, "data": TABLE, "subject": TEXT},
        required=("type",),
        custom="append_event",
    ),
    Tool(
        name="event/read",
        summary="Returns your events after `since`.",
        route="read_events",
        query={"since": {"type": "integer"}, "limit": COUNT, "types": TEXT},
    ),
)
BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}
BY_METHOD: Final[Mapping[str, Tool]] = {tool.method: tool for tool in TOOLS}

AGENT_TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="agent/spawn",
        summary="Starts an agent that the manifest allows you to start.",
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
        summary="Lists agents that you started.",
        route="list_agents",
        query={"state": TEXT, "name": TEXT, **_PAGE},
    ),
    Tool(
        name="agent/status",
        summary="Returns an agent that you started, or yourself.",
        route="get_agent",
        path=("id",),
    ),
    Tool(
        name="agent/terminate",
        summary="Terminates an agent that you started.",
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
        summary="Returns output of an agent that you started, after the cursor `since`.",
        path=("id",),
        body={"since": COUNT, "limit": COUNT},
        custom="recv",
    ),
)
BY_AGENT_METHOD: Final[Mapping[str, Tool]] = {tool.method: tool for tool in AGENT_TOOLS}
