"""How turns and programs of a session end: of themselves, or by what is no ACP."""

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from agentbox.contracts.sandboxes import SandboxChanges
from agentbox.core.slot_errors import (
    AcpInvalid,
    AdapterError,
    AgentEnded,
    SessionBusy,
    SlotUnavailable,
)
from agentbox.sessions import session_sandbox
from agentbox.sessions.shown import escape
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession

_CLOSE_SECONDS: Final = 5.0  # of a program that is suspended
_COMPARE_SECONDS: Final = 5.0  # of a branch, at the end of a turn
_log = structlog.get_logger()


async def refuse(session: "LiveSession", line: bytes) -> None:
    """A line that is no ACP ends the agent's program."""
    shown = escape(line[:200])
    session.ending = "acp-invalid"
    error = AcpInvalid(
        f"cannot go on with session {session.stored.session_id}: its agent sent what is no ACP",
        hint="look at its version, and at what its command prints to standard output",
        id=session.stored.session_id,
        line=shown,
    )
    async with session.lock:
        changes = Changes()
        session.fail_calls(changes, error)
        session.finish_turn(changes, "cancelled", error)
        session.set_state(changes, "failed", f"acp-invalid: {shown}")
        await session.commit(changes)
    await seal(session)


async def seal(session: "LiveSession") -> None:
    """Ends its sandbox with all that runs there; its branch is a review then. Nothing for one
    that is sealed; when agent-host cannot be reached, it is tried again later."""
    if not session.stored.has_sandbox:
        return
    try:
        await end_sandbox(session, 1)
    except SlotUnavailable as error:
        _log.info("not sealed yet", session_id=session.stored.session_id, reason=error.message)
        return
    except AdapterError as error:
        _log.info("no sandbox", session_id=session.stored.session_id, reason=error.message)
    async with session.lock:
        session.stored.has_sandbox = False
        await session.commit(Changes())


async def end_sandbox(session: "LiveSession", grace_s: float) -> None:
    """Nothing for one that is sealed. Raises as `AgentHost.end_sandbox`."""
    stored = session.stored
    if stored.has_sandbox and not stored.sandbox_id:  # the answer that named it was lost
        await session_sandbox.find_or_make(session)
    if stored.sandbox_id:
        await session.environment.host.end_sandbox(stored.sandbox_id, grace_s=grace_s)


async def on_end(session: "LiveSession", reason: str) -> None:
    """The program has ended."""
    program, session.program = session.program, None
    stderr = escape(program.stderr) if program is not None else ""
    why = "" if session.ending else f"{reason}{': ' if stderr else ''}{stderr[-300:]}"
    error = AgentEnded(
        f"cannot go on with session {session.stored.session_id}: {reason}",
        hint="prompt it again to resume it, or see its standard error",
        id=session.stored.session_id,
        stderr=stderr,
    )
    async with session.lock:
        changes = Changes()
        changes.add("DELETE FROM outbox WHERE session_id = ?", session.stored.session_id)
        changes.add("DELETE FROM requests WHERE session_id = ?", session.stored.session_id)
        session.requests.clear()
        session.permissions.drop_all(changes)
        session.fail_calls(changes, error)
        session.finish_turn(changes, "cancelled", None if session.stored.cancelled else error)
        session.stored.program = 0
        if session.stored.is_open and session.stored.state != "starting":
            resumes = _resume_setting(session) != "never" or session.ending == "suspend"
            session.set_state(changes, "suspended" if resumes else "failed", why)
        await session.commit(changes)
    session.ending = ""
    if session.stored.state == "failed":
        session.spawn(seal(session), "seal")


async def stop_turn(session: "LiveSession") -> None:
    """The agent has stopped: the client is told what changed, then why it stopped."""
    try:
        async with asyncio.timeout(_COMPARE_SECONDS):
            changed = await session.environment.host.show_changes(session.stored.sandbox_id)
    except (AdapterError, TimeoutError) as error:
        _log.info("changes not told", session_id=session.stored.session_id, reason=str(error))
        changed = None
    async with session.lock:
        if not session.stored.stopping:
            return
        changes = Changes()
        if changed is not None and changed.to_wire() != session.stored.changed:
            session.stored.changed = dict(changed.to_wire())
            session.environment.editors.notice(changes, session.stored, _told(changed))
        session.finish_turn(changes, session.stored.stopping, None)
        await session.commit(changes)


async def suspend(session: "LiveSession") -> None:
    """Nothing if it is. Raises SessionBusy."""
    stored = session.stored
    if stored.state == "busy":
        raise SessionBusy(
            f"cannot suspend session {stored.session_id}: a turn is under way",
            hint="cancel it first",
            id=stored.session_id,
        )
    if not stored.is_open:
        return
    program = session.program
    session.ending = "suspend" if program is not None else ""
    await session.environment.host.suspend_sandbox(stored.sandbox_id, grace_s=_CLOSE_SECONDS)
    async with asyncio.timeout(_CLOSE_SECONDS):
        while program is not None and session.program is program:
            await session.wait()


def _resume_setting(session: "LiveSession") -> str:
    found = session.environment.config().agents.get(session.stored.agent)
    return "auto" if found is None else found.acp.resume


def _told(changed: SandboxChanges) -> str:
    if not changed.total:
        return "the branch is as it was at its start"
    more = changed.total - len(changed.paths)
    return f"changed: {', '.join(changed.paths)}{f' and {more} more' if more else ''}"
