"""`McpHost` on the servers of this box."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

import structlog

from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.mcp import OPERATOR, McpServer, OfferedTool, ServerState
from agentbox.core import clock
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.slot_errors import (
    AdapterError,
    McpDrift,
    McpResult,
    McpUnavailable,
    NotFound,
    ValidationError,
)
from agentbox.mcphost.asking_call import AskingCall
from agentbox.mcphost.config import McpConfig
from agentbox.mcphost.connection import ServerConnection
from agentbox.mcphost.conversations import Conversations
from agentbox.mcphost.pool import ServerPool
from agentbox.mcphost.recorder import Recorder
from agentbox.mcphost.results import check_result
from agentbox.mcphost.server_call import ServerCall
from agentbox.mcphost.store import McpStore
from agentbox.mcphost.tool_catalogue import ToolCatalogue
from agentbox.plan.tables import McpServerPlan

_log = structlog.get_logger()


class McpService:
    """For one event loop."""

    def __init__(
        self, config: McpConfig, store: McpStore, pool: ServerPool, catalogue: ToolCatalogue
    ) -> None:
        self.config, self._store, self._pool, self._catalogue = config, store, pool, catalogue
        self._seen_at: dict[str, float] = {}
        self._protocols: dict[str, str] = {}
        self._calls: dict[str, int] = {}
        self._failures: dict[str, int] = {}
        self._told_drift: dict[tuple[str, str], str] = {}  # the live digest that was told
        self._recorder = Recorder(store)
        self._conversations = Conversations()

    async def list_servers(self) -> tuple[McpServer, ...]:
        return tuple(self._describe(name) for name in sorted(self.config.servers))

    async def get_server(self, name: str) -> McpServer:
        self._row(name)
        return self._describe(name)

    async def test_server(self, name: str) -> McpServer:
        self._row(name)
        with contextlib.suppress(McpUnavailable):  # the description has the reason
            connection = await self._pool.acquire(name, OPERATOR)
            await connection.refresh(max_age=0)
            await self._learn(name, connection)
        return self._describe(name)

    async def pin_server(self, name: str, pins: Mapping[str, str]) -> McpServer:
        if self._row(name).pin != "first-use":
            raise _invalid("/name", f"is pinned by agentbox.lock: run agentbox mcp pin {name}")
        live = self._catalogue.live.get(name, {})
        for tool, pinned in pins.items():
            if tool not in live or live[tool].digest != pinned:
                raise _invalid("/pins", f"has a definition of {tool[:64]} that is not the live one")
        await self._catalogue.pin(name, pins)
        return self._describe(name)

    async def restart_server(self, name: str) -> McpServer:
        self._row(name)
        await self._pool.restart(name)
        self._pool.failures.pop(name, None)
        return self._describe(name)

    async def list_tools(
        self, servers: tuple[str, ...], *, agent_id: str
    ) -> tuple[OfferedTool, ...]:
        names = [name for name in sorted(set(servers)) if name in self.config.servers]
        unknown = [name for name in names if not self._catalogue.is_known(name)]
        await asyncio.gather(*(self._discover(name, agent_id) for name in unknown))
        offered = [
            OfferedTool(server=name, definition=definition)
            for name in names
            for definition in self._catalogue.offered(name)
        ]
        return tuple(offered[: self.config.mcp.max_tools])

    async def call_tool(
        self,
        server: str,
        tool: str,
        *,
        arguments: Mapping[str, Any],
        agent_id: str,
        session_id: str,
        trace_id: str,
        can_ask: bool = False,
    ) -> dict[str, Any]:
        row = self._row(server)
        call = ServerCall(server, tool, arguments, agent_id, session_id, trace_id)
        if not row.elicitation:
            return await self._serve(row, call)
        asking = AskingCall(
            server,
            tool,
            can_ask=can_ask and self._conversations.make_room(agent_id),
            tell=lambda data: self._recorder.tell("mcp.asked", data, call),
        )
        work = self._serve(row, call, asking)
        return await self._conversations.begin(call.identity, asking, work)

    async def answer_call(
        self,
        state: str,
        *,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        agent_id: str,
        answers: Mapping[str, Any],
    ) -> dict[str, Any]:
        identity = ServerCall(server, tool, arguments, agent_id).identity
        return await self._conversations.answer(state, identity, answers)

    async def abandon_call(
        self, state: str, *, server: str, tool: str, arguments: Mapping[str, Any], agent_id: str
    ) -> None:
        identity = ServerCall(server, tool, arguments, agent_id).identity
        await self._conversations.abandon(state, identity)

    async def _serve(
        self, row: McpServerPlan, call: ServerCall, asking: AskingCall | None = None
    ) -> dict[str, Any]:
        """One call, with its event."""
        started, code = time.monotonic(), "ok"
        server, tool = call.server, call.tool
        data: dict[str, Any] = {
            "server": server,
            "tool": tool,
            "arguments": call.identity.arguments,
        }
        try:
            if not self._catalogue.is_selected(server, tool):
                raise NotFound(f"cannot find a tool {tool} of {server}", resource="tool", id=tool)
            result = await self._call(row, call, asking)
            data["result"] = digest(canonical_json(result))
            code = "error" if result.get("isError") else "ok"
            return result
        except McpUnavailable as error:
            code, self._pool.failures[server] = error.code, error.message
            raise McpUnavailable(
                f"cannot use the MCP server {server}: it cannot be started, or has ended",
                hint="the operator sees why in agentbox mcp show",
                server=server,
            ) from error  # agents see neither commands nor names of secrets
        except AdapterError as error:
            code = error.code
            raise
        except asyncio.CancelledError:
            code = "cancelled"
            raise
        finally:
            self._calls[server] = self._calls.get(server, 0) + 1
            if code not in ("ok", "error"):
                self._failures[server] = self._failures.get(server, 0) + 1
            data |= {"outcome": code, "ms": round((time.monotonic() - started) * 1000, 1)}
            self._recorder.tell("mcp.called", data, call)

    async def end_agent(self, agent_id: str) -> None:
        await self._pool.end_agent(agent_id)

    async def read_record(self, after: int, *, wait_s: float) -> tuple[LifecycleRecord, ...]:
        return await self._recorder.read(after, wait_s)

    async def configure(self, config: Mapping[str, Any]) -> None:
        try:
            newer = McpConfig.from_json(config)
        except ValueError as error:
            raise _invalid("/config", str(error)) from error
        await self.replace_config(newer)
        _log.info("configured", servers=len(newer.servers))

    async def replace_config(self, config: McpConfig) -> None:
        """Puts a newer configuration in force."""
        self.config = self._catalogue.config = config
        for name in set(self._catalogue.live) - set(config.servers):
            del self._catalogue.live[name]
        for name, tools in list(self._catalogue.live.items()):
            await self._catalogue.learn(name, tools)  # what is pinned now
        await self._pool.replace_config(config)

    async def close(self) -> None:
        """Ends all servers; returns when all events are stored."""
        await self._pool.close()
        await self._recorder.close()

    async def _call(
        self, row: McpServerPlan, call: ServerCall, asking: AskingCall | None
    ) -> dict[str, Any]:
        server, tool = call.server, call.tool
        connection = await self._pool.acquire(server, call.agent_id)
        await connection.refresh()
        await self._learn(server, connection)
        pinned, live = self._catalogue.pins(server).get(tool), connection.tools.get(tool)
        if pinned is None:
            raise self._drift(server, tool, "it is not pinned")
        if live is None or live.digest != pinned:
            reason = "the server no longer has it" if live is None else "its definition has changed"
            raise self._drift(server, tool, f"{reason} since it was pinned")
        definition = live.definition
        result = await connection.call(tool, call.arguments, row.call_seconds, asking)
        if "content" not in result:
            raise McpResult(
                f"cannot return the result of {tool}: it has no content", server=server, tool=tool
            )
        check_result(server, definition, result, row.max_result)
        return result

    async def _discover(self, server: str, agent_id: str) -> None:
        """Asks a server for its tools. One that fails offers what is known of it."""
        with contextlib.suppress(McpUnavailable):
            await self._learn(server, await self._pool.acquire(server, agent_id))

    async def _learn(self, server: str, connection: ServerConnection) -> None:
        """Takes what the connection listed last, and tells of new differences from the pins."""
        if self._catalogue.live.get(server) is connection.tools:
            return
        self._seen_at[server], self._protocols[server] = time.time(), connection.protocol
        await self._catalogue.learn(server, connection.tools)
        for row in self._catalogue.drifted(server):
            if self._told_drift.get((server, row.name)) == row.digest:
                continue
            self._told_drift[server, row.name] = row.digest
            data = {
                "server": server,
                "tool": row.name,
                "pinned": row.pinned,
                "live": row.digest,
            }
            self._recorder.tell("mcp.drift", data)

    def _describe(self, name: str) -> McpServer:
        row, failure = self.config.servers[name], self._pool.failures.get(name, "")
        instances = self._pool.count(name)
        state: ServerState = "running" if instances else "failed" if failure else "idle"
        seen = self._seen_at.get(name)
        return McpServer(
            name=name,
            transport=row.transport,
            pin=row.pin,
            state=state,
            agents=self.config.agents[name],
            instances=instances,
            calls=self._calls.get(name, 0),
            failures=self._failures.get(name, 0),
            tools=tuple(self._catalogue.rows(name)),
            seen_at=None if seen is None else clock.from_unix(seen),
            protocol=self._protocols.get(name, ""),
            detail=failure,
        )

    def _row(self, name: str) -> McpServerPlan:
        if (row := self.config.servers.get(name)) is None:
            raise NotFound(f"cannot find the MCP server {name}", resource="mcp-server", id=name)
        return row

    def _drift(self, server: str, tool: str, reason: str) -> McpDrift:
        return McpDrift(
            f"cannot call {tool} of {server}: {reason}",
            hint=f"agentbox mcp pin {server}",
            server=server,
            tool=tool,
        )


def _invalid(pointer: str, detail: str) -> ValidationError:
    return ValidationError(
        f"invalid {pointer}: {detail}", errors=[{"pointer": pointer, "detail": detail}]
    )
