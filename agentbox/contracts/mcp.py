"""The MCP servers of a box, as its API reports them, and what the program mcp-host offers."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Final, Literal, Protocol

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.core.records.bounds import bounded_text, schema_keywords
from agentbox.core.records.wire import JsonObj, Record, record

CONTRACT_VERSION: Final = "1.0.0"

SERVER_LABEL: Final = "agentbox.mcp"
"""Of the sandbox of a stdio server: the name of its row, by which agent-host knows the server."""

AGENT_LABEL: Final = f"{SERVER_LABEL}.agent"
"""Of the same: the id of the agent that it serves, "" for all, or `OPERATOR`."""

OPERATOR: Final = "operator"
"""In place of an agent's id: the instance of tests and pins."""

ToolState = Literal["offered", "unpinned", "drift", "left-out", "invalid"]
ServerState = Literal["off", "idle", "running", "failed"]


@record
class McpTool(Record):
    """One tool of a server. `digest` is that of its live definition, "" if the server no longer has
    it; `pinned` that of the pinned one, "" if there is none. `definition` is the live one:
    name, title, description, inputSchema, outputSchema and annotations, as far as it has them;
    `pinned_definition` the pinned one where it differs. `detail` says why it is not offered.
    """

    name: str
    state: ToolState
    digest: str
    pinned: str
    definition: JsonObj
    pinned_definition: JsonObj = field(default_factory=dict)
    detail: str = ""


@record
class McpServer(Record):
    """A row of `[mcp.servers]`. `agents`: names in [agents] that it is offered to. `instances` are
    its live connections. `tools` are those of the last time it was asked, at `seen_at`. `detail`
    says why it failed last.
    """

    name: str
    transport: Literal["stdio", "http"]
    pin: Literal["locked", "first-use"]
    state: ServerState
    agents: tuple[str, ...]
    instances: int
    calls: int
    failures: int
    tools: tuple[McpTool, ...]
    seen_at: datetime | None = None
    protocol: str = ""
    detail: str = ""


@record
class McpServers(Record):
    """All servers of the manifest, by name."""

    items: tuple[McpServer, ...]


@record
class OfferedTool(Record):
    """A tool that agents may be shown: its pinned definition."""

    server: str
    definition: JsonObj


Pins = Annotated[
    Mapping[str, str], schema_keywords(maxProperties=1024, additionalProperties={"type": "string"})
]
ServerName = Annotated[str, bounded_text(pattern="^[a-z][a-z0-9-]{0,31}$")]


class McpEndpoints(Protocol):
    """What the API serves about MCP servers."""

    async def list_servers(self) -> McpServers: ...

    async def show_server(self, name: ServerName) -> McpServer: ...

    async def test_server(self, name: ServerName) -> McpServer:
        """Asks the server for its tools now, starting it if necessary."""

    async def pin_server(self, name: ServerName, pins: Pins) -> McpServer:
        """`pins`: digests by tool, of a server with `pin = "first-use"`. They replace all."""

    async def restart_server(self, name: ServerName) -> McpServer: ...


class McpHost(Protocol):
    """What mcp-host offers the other programs of the box."""

    @property
    def capabilities(self) -> frozenset[str]: ...

    async def list_servers(self) -> tuple[McpServer, ...]:
        """The enabled ones, by name."""
        ...

    async def get_server(self, name: str) -> McpServer:
        """Raises NotFound."""
        ...

    async def test_server(self, name: str) -> McpServer:
        """Raises NotFound; a server that cannot be asked is `failed`, with the reason."""
        ...

    async def pin_server(self, name: str, pins: Mapping[str, str]) -> McpServer:
        """Replaces the pins of first use. Raises NotFound, and ValidationError for a server that
        agentbox.lock pins, and for a definition that was not seen."""
        ...

    async def restart_server(self, name: str) -> McpServer:
        """Raises NotFound."""
        ...

    async def list_tools(
        self, servers: tuple[str, ...], *, agent_id: str
    ) -> tuple[OfferedTool, ...]:
        """What these servers offer, at most `mcp.max_tools`, in the order of server and name. A
        server whose tools are not known yet is started; one that fails has none."""
        ...

    async def call_tool(
        self,
        server: str,
        tool: str,
        *,
        arguments: JsonObj,
        agent_id: str,
        session_id: str,
        trace_id: str,
        can_ask: bool = False,
    ) -> JsonObj:
        """The server's result: content, structuredContent and isError. Raises NotFound for a tool
        that is not offered, McpDrift, McpUnavailable, McpTimeout, McpResult.

        With `can_ask` it may be questions of the server instead, as the protocol has them:
        resultType "input_required", inputRequests and requestState."""
        ...

    async def answer_call(
        self,
        state: str,
        *,
        server: str,
        tool: str,
        arguments: JsonObj,
        agent_id: str,
        answers: JsonObj,
    ) -> JsonObj:
        """Goes on with a call that returned questions: `state` is its requestState, good for once,
        `answers` are inputResponses. As `call_tool`; also raises NotFound unless that call of that
        agent waits in that state, and ValidationError for an answer that does not match its
        form."""
        ...

    async def abandon_call(
        self, state: str, *, server: str, tool: str, arguments: JsonObj, agent_id: str
    ) -> None:
        """Ends a call whose questions will not be answered; does nothing if it has ended."""
        ...

    async def configure(self, config: JsonObj) -> None:
        """Puts the configuration of a newer plan in force: that of `mcphost.config`."""
        ...

    async def end_agent(self, agent_id: str) -> None:
        """Ends what served only that agent."""
        ...

    async def read_record(self, after: int, *, wait_s: float = 0) -> tuple[LifecycleRecord, ...]:
        """Events after `after`, which acknowledges all up to it; waits for the first."""
        ...


RECORDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (McpTool, McpServer, McpServers)
}
