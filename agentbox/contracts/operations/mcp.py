"""Operations of MCP servers."""

from agentbox.contracts.mcp import McpEndpoints, McpHost
from agentbox.contracts.routes.operation import read, write
from agentbox.contracts.routes.resource import Resource

_SECONDS = 90  # a server that starts for the first time

MCP = Resource(
    "mcp",
    McpEndpoints,
    scope="agents",
    operations=(
        read(
            "list_servers",
            "GET /v1/mcp/servers",
            "The MCP servers of the manifest, with the tools that they had when last asked.",
            route="list_mcp_servers",
        ),
        read(
            "show_server",
            "GET /v1/mcp/servers/{name}",
            "One MCP server.",
            route="show_mcp_server",
        ),
        write(
            "test_server",
            "POST /v1/mcp/servers/{name}/test",
            "Asks an MCP server for its tools now; it is started if it does not run.",
            route="test_mcp_server",
            deadline_s=_SECONDS,
        ),
        write(
            "pin_server",
            "POST /v1/mcp/servers/{name}/pin",
            'Pins definitions that were seen, of a server with `pin = "first-use"`.',
            route="pin_mcp_server",
        ),
        write(
            "restart_server",
            "POST /v1/mcp/servers/{name}/restart",
            "Ends all instances of an MCP server: the next call starts it again.",
            route="restart_mcp_server",
            deadline_s=_SECONDS,
        ),
    ),
)
_CALL_SECONDS = 3700  # above every `call_seconds`, and the start of a server
MCP_HOST = Resource(
    "mcp_host",
    McpHost,
    operations=(
        read("list_servers", rpc="server.list"),
        read("get_server", rpc="server.get"),
        write("test_server", rpc="server.test", deadline_s=_SECONDS),
        write("pin_server", rpc="server.pin"),
        write("restart_server", rpc="server.restart", deadline_s=_SECONDS),
        read("list_tools", rpc="tool.list", deadline_s=_SECONDS),
        write("call_tool", rpc="tool.call", deadline_s=_CALL_SECONDS),
        write("answer_call", rpc="tool.answer", deadline_s=_CALL_SECONDS),
        write("abandon_call", rpc="tool.abandon", deadline_s=30),
        write("configure", rpc="config.replace", deadline_s=30),
        write("end_agent", rpc="agent.end", deadline_s=30),
        read("read_record", rpc="record.read", deadline_s=30, deadline_from="wait_s"),
    ),
)
RESOURCES = (MCP,)
