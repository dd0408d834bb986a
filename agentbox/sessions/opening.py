"""How a session begins, and how it goes on with a new program of its agent: the outer session stays
the same. What the agent can is asked of it, never told by its name.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.contracts.sessions import WORKSPACE
from agentbox.core.slot_errors import AdapterError, AgentEnded, SlotUnavailable
from agentbox.sessions import ending, protocol, session_sandbox
from agentbox.sessions.agent_messages import bounded
from agentbox.sessions.live_session import WORK, LiveSession
from agentbox.sessions.paths import PathMap
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.environment import SessionAgent

CLIENT_CAPABILITIES: Final = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
}
_MAX_ID: Final = 1024  # characters of the id of an inner session
_MCP_COMMAND: Final = "/usr/bin/agentbox-mcp"
_END_SECONDS: Final = 2.0  # of a program that did not open its session


async def create(session: LiveSession, *, again: bool = False) -> None:
    """Sandbox, program and inner session of a stored session; `again`: some of them may be there,
    and a program that is ends. Raises what spawning an agent raises, AcpTimeout, AcpInvalid,
    AgentEnded; the session has failed then. With `again` it has not for SlotUnavailable."""
    host = session.environment.host
    try:
        await session_sandbox.find_or_make(session)
        if again:
            await host.suspend_sandbox(session.stored.sandbox_id, grace_s=0)
            with session.as_caller():
                await host.resume_sandbox(session.stored.sandbox_id)
        await _launch(session, native=False)
    except AdapterError as error:
        if not (again and isinstance(error, SlotUnavailable)):
            await _fail(session, error)
        raise


async def resume(session: LiveSession) -> None:
    """A new program for a suspended session. Raises as `create`; it stays suspended then."""
    stored = session.stored
    how = session.agent.acp.resume
    try:
        with session.as_caller():
            await session.environment.host.resume_sandbox(stored.sandbox_id)
        await _launch(session, native=how in ("auto", "native", "never"))
    except AdapterError as error:
        await _stop(session)
        async with session.lock:
            changes = Changes()
            session.set_state(changes, "suspended", error.message)
            await session.commit(changes)
        raise


async def _launch(session: LiveSession, *, native: bool) -> None:
    stored, agent = session.stored, session.agent
    inside = str(session.environment.config().branches / stored.sandbox_id / WORK)
    cwd = PathMap(inside).inner(stored.cwd)
    async with session.lock:
        if not stored.is_open:
            raise AgentEnded(
                f"cannot start session {stored.session_id}: it is closed",
                id=stored.session_id,
                stderr="",
            )
        changes = Changes()
        stored.generation, stored.calls = stored.generation + 1, 0
        stored.program = 0
        changes.add("DELETE FROM outbox WHERE session_id = ?", stored.session_id)
        changes.add("DELETE FROM calls WHERE session_id = ?", stored.session_id)
        session.calls.clear()
        session.set_state(changes, "starting")
        await session.commit(changes)
    program = session.make_program()
    relative = stored.cwd.removeprefix(WORKSPACE).lstrip("/")
    await program.start(agent.command, relative)
    async with session.lock:
        await session.commit(Changes())
    program.attach()
    bounds = session.environment.config().acp
    told = await session.call(
        "initialize",
        {
            "protocolVersion": protocol.VERSION,
            "clientCapabilities": CLIENT_CAPABILITIES,
            "clientInfo": {"name": "agentbox", "version": _version()},
        },
        bounds.initialize_seconds,
    )
    if told.get("protocolVersion") != protocol.VERSION:
        raise AgentEnded(
            f"cannot use [agents.{agent.name}]: it speaks version {told.get('protocolVersion')} "
            f"of ACP, and this box version {protocol.VERSION}",
            id=stored.session_id,
            stderr="",
        )
    stored.capabilities = bounded(dict(told.get("agentCapabilities") or {}), {})
    if agent.auth:
        await session.call("authenticate", {"methodId": agent.auth}, bounds.initialize_seconds)
    opened = await _open(session, agent, cwd, native=native)
    async with session.lock:
        changes = Changes()
        stored.loading = False
        stored.modes = bounded(dict(opened.get("modes") or {}), {})
        stored.config = bounded(list(opened.get("configOptions") or ()), [])
        session.set_state(changes, "idle")
        await session.commit(changes)


async def _open(
    session: LiveSession, agent: "SessionAgent", cwd: str, *, native: bool
) -> Mapping[str, Any]:
    """The inner session: loaded, resumed, or a new one."""
    stored, seconds = session.stored, session.environment.config().acp.new_seconds
    params = {"cwd": cwd, "mcpServers": _servers(agent)}
    can = stored.capabilities
    if native and stored.inner_id:
        if can.get("loadSession"):
            stored.loading = True
            return dict(
                await session.call(
                    "session/load", {**params, "sessionId": stored.inner_id}, seconds
                )
                or {}
            )
        if (can.get("sessionCapabilities") or {}).get("resume") is not None:
            return dict(
                await session.call(
                    "session/resume", {**params, "sessionId": stored.inner_id}, seconds
                )
                or {}
            )
    opened: Mapping[str, Any] = await session.call("session/new", params, seconds)
    stored.history_due = bool(stored.inner_id)
    stored.inner_id = str(opened["sessionId"])
    if len(stored.inner_id) > _MAX_ID:
        stored.inner_id = ""
        raise AgentEnded(
            f"cannot use [agents.{agent.name}]: the id of its session is longer than {_MAX_ID}",
            id=stored.session_id,
            stderr="",
        )
    return opened


async def _fail(session: LiveSession, error: AdapterError) -> None:
    await _stop(session)
    async with session.lock:
        changes = Changes()
        if session.stored.is_open:
            session.set_state(changes, "failed", error.message)
        await session.commit(changes)
    await ending.seal(session)


async def _stop(session: LiveSession) -> None:
    """Ends a program that did not open its session."""
    session.stored.loading = False
    program = session.program
    if program is None or not session.stored.program:
        return
    session.ending = "start"
    await program.end(_END_SECONDS)
    async with asyncio.timeout(_END_SECONDS * 4):
        while session.program is program:
            await session.wait()


def _version() -> str:
    from agentbox import __version__

    return __version__


def _servers(agent: "SessionAgent") -> list[Mapping[str, Any]]:
    """Those that it is offered, by the command that the box has for them: it has the agent's token
    from the environment. With a preset the settings of its CLI name them."""
    if agent.has_preset:
        return []
    return [
        {"name": name, "command": _MCP_COMMAND, "args": [name], "env": []} for name in agent.mcp
    ]
