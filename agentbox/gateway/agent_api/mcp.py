"""`/mcp`: the tools of the door by the Model Context Protocol, streamable HTTP (modelcontextprotocol.io/specification).

Each message is one POST and each answer one JSON body: no stream is opened and no session kept, which the protocol allows.
"""

import json
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from agentbox import __version__
from agentbox.gateway.agent_api import jsonrpc
from agentbox.gateway.agent_api.api import Door
from agentbox.gateway.agent_api.app import frame, identify, read, respond
from agentbox.gateway.agent_api.errors import PARAMS, STRANGER, UNKNOWN, DoorError
from agentbox.gateway.agent_api.tools import AGENTS, TOOLS, Tool
from agentbox.policy.rights.standing import Standing

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_FALSE_ORIGIN: Final = "this origin may not call: a page in a browser is no agent"


def name_of(tool: Tool) -> str:
    """`bead/claim` as `bead_claim`: clients hand tool names on to models, which take no slash."""
    return tool.name.replace("/", "_")


BY_NAME: Final = {name_of(tool): tool for tool in (*TOOLS, *AGENTS)}


def _is_loopback(origin: str) -> bool:
    try:
        return urlsplit(origin).hostname in _LOOPBACK
    except ValueError:  # no origin that a browser sends
        return False


class McpApp:
    """An ASGI application."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "MCP is spoken over HTTP here"})
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get(b"origin")
        if origin is not None and not _is_loopback(origin):
            await respond(send, 403, _refusal(_FALSE_ORIGIN))
            return
        if scope["method"] != "POST":
            await respond(send, 405, b"", (b"allow", b"POST"))
            return
        if headers.get(b"mcp-protocol-version", VERSIONS[0]) not in VERSIONS:
            await respond(send, 400, _refusal(f"the protocol versions spoken here are {', '.join(VERSIONS)}"))
            return
        try:
            who = identify(self._door, scope["headers"])
            body = await read(receive, frame(who))
        except DoorError as error:
            challenge = ((b"www-authenticate", b"Bearer"),) if error.number == STRANGER else ()
            status = 401 if challenge else 413
            await respond(
                send, status, jsonrpc.wire({"error": error.wire()}, None), *challenge, (b"connection", b"close")
            )
            return
        answer = await jsonrpc.answer(body, partial(self._call, who))
        await respond(send, 200 if answer else 202, answer or b"")

    async def _call(self, who: Standing, method: str, params: Any) -> Any:
        given = params if isinstance(params, dict) else {}
        if method == "initialize":
            return _welcome(given)
        if method == "ping" or method.startswith("notifications/"):
            return {}
        if method == "tools/list":
            with self._door.floods.room(who.agent_id):
                return {"tools": [_shown(tool) for tool in self._tools(who)]}
        if method == "tools/call":
            return await self._tool(who, given)
        raise DoorError(UNKNOWN, "this server has tools, and no other method", "not-found")

    def _tools(self, who: Standing) -> list[Tool]:
        held = {row["name"] for row in self._door.tools(who)}
        return [tool for tool in TOOLS if tool.name in held] + (list(AGENTS) if who.children else [])

    async def _tool(self, who: Standing, given: dict[str, Any]) -> Any:
        """What a tool refuses is a result with `isError`, so that a model reads it."""
        tool, arguments = BY_NAME.get(str(given.get("name"))), given.get("arguments") or {}
        if tool is None:
            raise DoorError(PARAMS, "there is no such tool; tools/list shows them all", "not-found")
        try:
            result = await self._door.call(who, tool.method, arguments)
        except DoorError as error:
            return {"content": [_text(error.message)], "structuredContent": {"error": error.wire()}, "isError": True}
        whole = result if isinstance(result, dict) else {"result": result}
        return {"content": [_text(json.dumps(result))], "structuredContent": whole, "isError": False}


def _welcome(given: dict[str, Any]) -> dict[str, Any]:
    asked = given.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "agentbox", "version": __version__},
        "instructions": "Beads are work items, pods files, memory searchable notes. All that is here is this agent's own.",
    }


def _shown(tool: Tool) -> dict[str, Any]:
    return {"name": name_of(tool), "description": tool.summary, "inputSchema": tool.schema}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _refusal(message: str) -> bytes:
    return jsonrpc.wire({"error": DoorError(PARAMS, message).wire()}, None)
