"""The callable tools, with the schemas of their arguments. The slot method `bead.claim` is the tool
`bead/claim`. Most follow from the operations; written out are those of another shape.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, get_origin

from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.operations.beads import BEADS
from agentbox.contracts.operations.events import EVENTS
from agentbox.contracts.operations.memory import MEMORY
from agentbox.contracts.routes.operation import AgentAccess, Operation, RequestMember
from agentbox.contracts.routes.resource import Resource, split_annotation
from agentbox.core.frozen import frozen
from agentbox.core.records.wire import JsonObj, JsonValue

Schema = Mapping[str, Any]
TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
TABLE: Final[Schema] = {"type": "object"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
ANY: Final[Schema] = {}


@frozen
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


def _derived(resource: Resource) -> tuple[Tool, ...]:
    """The tools of a resource, in the order of its table."""
    return tuple(
        _tool(resource, row, row.agent)
        for row in resource.operations
        if row.agent is not None and row.agent.tool
    )


def _tool(resource: Resource, row: Operation, access: AgentAccess) -> Tool:
    members = [
        member
        for member in resource.members(row.name)
        if member.argument and not member.principal and member.name not in access.without
    ]
    body = {member.name: _type(member) for member in members if member.location == "body"}
    return Tool(
        name=access.tool,
        summary=access.summary or row.summary,
        route=row.route or row.name,
        path=tuple(member.name for member in members if member.location == "path"),
        query={member.name: _type(member) for member in members if member.location == "query"},
        body=body or None,
        required=tuple(
            member.name
            for member in members
            if member.required and member.location != "path" and member.name not in access.optional
        ),
        custom=access.custom,
    )


def _type(member: RequestMember) -> Schema:
    """The JSON type of an argument, without the bounds: the API checks those. A list in a query is
    one text.
    """
    kind, keywords = split_annotation(member.annotation)
    if kind is int:
        return COUNT if keywords.get("minimum", 0) >= 0 else INTEGER
    if kind is float:
        return NUMBER
    if kind is JsonValue:
        return ANY
    if get_origin(kind) is tuple:
        return TEXT if member.location == "query" else TEXTS
    is_table = kind is JsonObj or get_origin(kind) is Mapping
    return TABLE if is_table else TEXT


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="bead/create",
        summary="Creates a bead: an epic, or with parent_id a child of one of your beads. The "
        "tag for:<agent> assigns it to agents of that name.",
        body={**_BEAD, "parent_id": TEXT},
        required=("title",),
        custom="create_bead",
    ),
    *_derived(BEADS),
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
    *_derived(MEMORY),
    Tool(
        name="event/append",
        summary="Appends one of your events to the journal.",
        body={"type": TEXT, "data": TABLE, "subject": TEXT},
        required=("type",),
        custom="append_event",
    ),
    *_derived(EVENTS),
    Tool(
        name="skill/list",
        summary="Lists the skills of this box, with what each is for: instructions to read before "
        "such work.",
        custom="list_skills",
    ),
    Tool(
        name="skill/read",
        summary="Returns a file of a skill, by default its SKILL.md, and the paths of its files.",
        body={"name": TEXT, "path": TEXT},
        required=("name",),
        custom="read_skill",
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
    *_derived(AGENTS),
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
