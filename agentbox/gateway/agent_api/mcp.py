"""`/mcp`: the agent API's tools over MCP, streamable HTTP (modelcontextprotocol.io/specification).

Each message is one POST, and the response one JSON body. A client that asks for the progress of a
call gets a stream if it takes longer than a second. There are no sessions.
"""

import json
import re
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from agentbox import __version__
from agentbox.core.records.json_input import read_json
from agentbox.gateway.agent_api import jsonrpc, mcp_progress, mcp_questions, mcp_stateless
from agentbox.gateway.agent_api.api import AgentApi
from agentbox.gateway.agent_api.app import frame_limit, identify, read_body, respond
from agentbox.gateway.agent_api.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    AgentApiError,
)
from agentbox.gateway.agent_api.mcp_sessions import AskedSessions, takes_questions
from agentbox.gateway.agent_api.server_tools import FIRST, INPUT_REQUIRED, Turn, split_name
from agentbox.gateway.agent_api.skills import EXTENSION, MCP_METHODS
from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS, Tool
from agentbox.policy.rights.authorization import Authorization

HANDSHAKE_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that begin with `initialize`."""
VERSIONS: Final = (mcp_stateless.REVISION, *HANDSHAKE_VERSIONS)
_OFFER: Final[dict[str, Any]] = {
    "capabilities": {
        "tools": {"listChanged": False},
        "resources": {"listChanged": False, "subscribe": False},
        "extensions": {EXTENSION: {}},
    },
    "instructions": "Beads are work items, pods are files, memory holds searchable notes. "
    "Everything belongs to this agent. Skills are instructions for kinds of work: skill_list "
    "shows them, skill_read returns one.",
}
_SERVER_OFFER: Final[dict[str, Any]] = {"capabilities": {"tools": {"listChanged": False}}}
_NAME: Final = re.compile("[A-Za-z0-9_-]{1,64}")
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
        self._agent_api, self._questions = agent_api, mcp_questions.OpenQuestions()
        self._sessions = AskedSessions(agent_api.config)

    async def call(self, request: Request) -> Response:
        """One message. Raises AgentApiError for an unknown caller, or a message that is too
        large."""
        origin = request.headers.get("origin")
        if origin is not None and not _is_loopback(origin):
            return respond(_error(_FORBIDDEN_ORIGIN), 403)
        caller = identify(self._agent_api, request)
        server = request.path_params.get("server", "")
        if server and server not in caller.mcp:
            return respond(_error(f"this agent is not offered an MCP server {server[:32]!r}"), 404)
        body = await read_body(request, frame_limit(caller))
        message = _decode(body)
        if mcp_questions.is_answer(message):
            if self._questions.take(caller.agent_id, message):
                return respond(None, 202)
            return respond(_error("no question waits for this answer"), 400)
        version = request.headers.get("mcp-protocol-version", HANDSHAKE_VERSIONS[0])
        if version not in HANDSHAKE_VERSIONS or mcp_stateless.has_envelope(message):
            return await self._call_stateless(caller, server, request, body)
        if _method(message) == "tools/call" and takes_questions(request):
            return await self._questions.respond(
                caller.agent_id,
                lambda ask: jsonrpc.handle(body, partial(self._call, caller, server, ask=ask)),
            )
        answer = await jsonrpc.handle(body, partial(self._call, caller, server))
        response = respond(answer, 200 if answer else 202)
        if _method(message) == "initialize":
            self._sessions.begin(
                response, message.get("params"), (server,) if server else caller.mcp
            )
        return response

    async def _call_stateless(
        self, caller: Authorization, server: str, request: Request, body: bytes
    ) -> Response:
        """A request of the revision without a handshake."""
        message = _decode(body)
        if isinstance(message, list):
            refusal = AgentApiError(INVALID_REQUEST, "this revision has no batches of requests")
            return respond(jsonrpc.encode_error(refusal), 400)
        if isinstance(message, dict) and "id" not in message:
            return _acknowledge(request)
        status = 400  # unless the message is a request

        async def call(method: str, params: Any) -> Any:
            nonlocal status
            try:
                mcp_stateless.check_unique(request.headers.raw)
                mcp_stateless.check_envelope(message, request.headers, VERSIONS)
                status = 200
                turn = mcp_stateless.read_turn(message)
                served = await self._serve(caller, server, method, params, turn)
                return mcp_stateless.complete(served)
            except AgentApiError as error:
                status = mcp_stateless.HTTP_STATUS.get(error.number, 200)
                raise

        response = jsonrpc.handle(body, call)
        token = mcp_progress.token(request, message) if isinstance(message, dict) else None
        if token is not None:
            return await mcp_progress.respond_with_progress(response, token, lambda: status)
        return respond(await response, status)

    async def _call(
        self,
        caller: Authorization,
        server: str,
        method: str,
        params: Any,
        ask: mcp_questions.Ask | None = None,
    ) -> Any:
        arguments = params if isinstance(params, dict) else {}
        if method == "initialize":
            return _initialize_result(arguments, _offer(server))
        if method == "ping" or method.startswith("notifications/"):
            return {}
        if ask is None or method != "tools/call":
            return await self._serve(caller, server, method, arguments)
        return await self._converse(caller, server, arguments, ask)

    async def _converse(
        self, caller: Authorization, server: str, params: dict[str, Any], ask: mcp_questions.Ask
    ) -> Any:
        """A call whose questions `ask` puts to the client, until it has a result."""
        turn, is_over = Turn(can_ask=True), False
        try:
            while True:
                result = await self._call_tool(caller, server, params, turn)
                if is_over := result.get("resultType") != INPUT_REQUIRED:
                    return result
                turn = Turn(can_ask=True, state=result["requestState"])
                turn = replace(turn, answers=await ask(result["inputRequests"]))
        finally:
            if turn.state and not is_over:
                named, arguments = _target(server, params), params.get("arguments") or {}
                self._agent_api.server_tools.abandon(caller, *named, arguments, turn.state)

    async def _serve(
        self,
        caller: Authorization,
        server: str,
        method: str,
        arguments: Any,
        turn: Turn = FIRST,
    ) -> Any:
        """The methods that all revisions share, with the members that the newest requires: clients
        of others ignore them."""
        if method == "server/discover":
            return {**_discover_result(_offer(server)), **mcp_stateless.CACHED}
        if method == "tools/list":
            with self._agent_api.rate_limit.acquire(caller.agent_id):
                own = [] if server else map(_describe_tool, self._allowed_tools(caller))
                tools = [*own, *await self._agent_api.server_tools.describe(caller, server)]
            return {"tools": tools, **mcp_stateless.CACHED}
        if method in MCP_METHODS and not server:
            with self._agent_api.rate_limit.acquire(caller.agent_id):
                result = MCP_METHODS[method](self._agent_api.skills, caller, arguments)
            return {**result, **mcp_stateless.CACHED}
        if method == "tools/call":
            return await self._call_tool(caller, server, arguments, turn)
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

    async def _call_tool(
        self, caller: Authorization, server: str, params: dict[str, Any], turn: Turn
    ) -> Any:
        """Errors of a tool are results with `isError`, so that the model sees them. A result of a
        server's tool is passed on as it is."""
        name, arguments = str(params.get("name")), params.get("arguments") or {}
        server, server_tool = _target(server, params)
        tool = None if server_tool else BY_NAME.get(name)
        if tool is None and not (server in caller.mcp and _NAME.fullmatch(server_tool)):
            raise AgentApiError(
                INVALID_PARAMS, "unknown tool; tools/list shows all tools", "not-found"
            )
        try:
            if tool is None:
                return await self._agent_api.call_server_tool(
                    caller, server, server_tool, arguments, turn
                )
            result = await self._agent_api.call(caller, tool.method, arguments)
        except AgentApiError as error:
            if error.number == INVALID_PARAMS and tool is None:
                raise  # no such tool
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


def _target(server: str, params: dict[str, Any]) -> tuple[str, str]:
    """Server and tool of a call; "" for a tool of the box. `server` is that of the address."""
    name = str(params.get("name"))
    return (server, name) if server else split_name(name)


def _method(message: Any) -> Any:
    """None for what is no single message."""
    return message.get("method") if isinstance(message, dict) else None


def _offer(server: str) -> dict[str, Any]:
    """What `/mcp`, or the address of one server, has."""
    return _SERVER_OFFER if server else _OFFER


def _initialize_result(params: dict[str, Any], offer: dict[str, Any]) -> dict[str, Any]:
    requested = params.get("protocolVersion")
    return {
        "protocolVersion": requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0],
        "serverInfo": {"name": "agentbox", "version": __version__},
        **offer,
    }


def _discover_result(offer: dict[str, Any]) -> dict[str, Any]:
    return {"supportedVersions": list(VERSIONS), **offer}


def _acknowledge(request: Request) -> Response:
    """A notification of the revision without a handshake, which has none that a server acts on."""
    version = request.headers.get("mcp-protocol-version")
    if version != mcp_stateless.REVISION:
        unsupported = mcp_stateless.unsupported_version(version, VERSIONS)
        return respond(jsonrpc.encode_error(unsupported), 400)
    return respond(None, 202)


def _decode(body: bytes) -> Any:
    """The message; None if it is not JSON."""
    try:
        return read_json(body)
    except ValueError:
        return None


def _describe_tool(tool: Tool) -> dict[str, Any]:
    return {"name": mcp_name(tool), "description": tool.summary, "inputSchema": tool.schema}


def _text_content(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _error(message: str) -> bytes:
    return jsonrpc.encode_error(AgentApiError(INVALID_PARAMS, message))
