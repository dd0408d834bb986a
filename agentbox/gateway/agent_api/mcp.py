"""`/mcp`: the agent API's tools over MCP, streamable HTTP (modelcontextprotocol.io/specification).

Each message is one POST and each response one JSON body, without streams and sessions, as the
protocol allows.
"""

import json
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from agentbox import __version__
from agentbox.gateway.agent_api import jsonrpc
from agentbox.gateway.agent_api.api import AgentApi
from agentbox.gateway.agent_api.app import frame_limit, identify, read_body, respond
from agentbox.gateway.agent_api.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    AgentApiError,
)
from agentbox.gateway.agent_api.skills import EXTENSION, MCP_METHODS
from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS, Tool
from agentbox.policy.rights.authorization import Authorization

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_FORBIDDEN_ORIGIN: Final = "this origin is not allowed: browser pages may not call the agent API"


def mcp_name(tool: Tool) -> str:
    """`bead/claim` becomes `bead_claim`: clients pass tool names to models, which accept no
    slash."""
    return tool.name.replace("/", "_")


BY_NAME: Final = {mcp_name(tool): tool for tool in (*TOOLS, *AGENT_TOOLS)}


def _is_loopback(origin: str) -> bool:
    try:
        return urlsplit(origin).hostname in _LOOPBACK
    except ValueError:  # not an origin that browsers send
        return False


class McpEndpoint:
    """The endpoint of `/mcp`."""

    def __init__(self, agent_api: AgentApi) -> None:
        self._agent_api = agent_api

    async def call(self, request: Request) -> Response:
        """One message. Raises AgentApiError for an unknown caller, or a message that is too
        large."""
        origin = request.headers.get("origin")
        if origin is not None and not _is_loopback(origin):
            return respond(_error(_FORBIDDEN_ORIGIN), 403)
        if request.headers.get("mcp-protocol-version", VERSIONS[0]) not in VERSIONS:
            message = f"unsupported protocol version: use one of {', '.join(VERSIONS)}"
            return respond(_error(message), 400)
        caller = identify(self._agent_api, request)
        body = await read_body(request, frame_limit(caller))
        response = await jsonrpc.handle(body, partial(self._call, caller))
        return respond(response, 200 if response else 202)

    async def _call(self, caller: Authorization, method: str, params: Any) -> Any:
        arguments = params if isinstance(params, dict) else {}
        if method == "initialize":
            return _initialize_result(arguments)
        if method == "ping" or method.startswith("notifications/"):
            return {}
        if method == "tools/list":
            with self._agent_api.rate_limit.acquire(caller.agent_id):
                return {"tools": [_describe_tool(tool) for tool in self._allowed_tools(caller)]}
        if method in MCP_METHODS:
            with self._agent_api.rate_limit.acquire(caller.agent_id):
                return MCP_METHODS[method](self._agent_api.skills, caller, arguments)
        if method == "tools/call":
            return await self._call_tool(caller, arguments)
        raise AgentApiError(
            METHOD_NOT_FOUND,
            "unknown method: this server has tools, resources and skills",
            "not-found",
        )

    def _allowed_tools(self, caller: Authorization) -> list[Tool]:
        allowed = {row["name"] for row in self._agent_api.tools(caller)}
        return [tool for tool in TOOLS if tool.name in allowed] + (
            list(AGENT_TOOLS) if caller.children else []
        )

    async def _call_tool(self, caller: Authorization, params: dict[str, Any]) -> Any:
        """Errors of a tool are results with `isError`, so that the model sees them."""
        tool, arguments = BY_NAME.get(str(params.get("name"))), params.get("arguments") or {}
        if tool is None:
            raise AgentApiError(
                INVALID_PARAMS, "unknown tool; tools/list shows all tools", "not-found"
            )
        try:
            result = await self._agent_api.call(caller, tool.method, arguments)
        except AgentApiError as error:
            return {
                "content": [_text_content(error.message)],
                "structuredContent": {"error": error.to_wire()},
                "isError": True,
            }
        structured = result if isinstance(result, dict) else {"result": result}
        return {
            "content": [_text_content(json.dumps(result))],
            "structuredContent": structured,
            "isError": False,
        }


def _initialize_result(params: dict[str, Any]) -> dict[str, Any]:
    requested = params.get("protocolVersion")
    return {
        "protocolVersion": requested if requested in VERSIONS else VERSIONS[0],
        "capabilities": {
            "tools": {"listChanged": False},
            "resources": {"listChanged": False, "subscribe": False},
            "extensions": {EXTENSION: {}},
        },
        "serverInfo": {"name": "agentbox", "version": __version__},
        "instructions": "Beads are work items, pods are files, memory holds searchable notes. "
        "Everything belongs to this agent. Skills are instructions for kinds of work: skill_list "
        "shows them, skill_read returns one.",
    }


def _describe_tool(tool: Tool) -> dict[str, Any]:
    return {"name": mcp_name(tool), "description": tool.summary, "inputSchema": tool.schema}


def _text_content(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _error(message: str) -> bytes:
    return jsonrpc.encode_error(AgentApiError(INVALID_PARAMS, message))
