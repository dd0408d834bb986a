"""Turns: one prompt of a client, until the agent says why it stopped. A cancelled turn always ends:
by the agent, else by an interrupt, else with its program.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import structlog

from agentbox.contracts.sessions import PromptResult, SessionItem
from agentbox.core.slot_errors import SessionBusy, SlotUnavailable
from agentbox.sessions.live_session import LiveSession
from agentbox.sessions.store import Changes

MAX_TEXT: Final = 1 << 20  # bytes of the text of a turn in its result
_PAGE: Final = 256
MAX_HISTORY: Final = 256 << 10  # bytes of a transcript that a new inner session is given
_END_SECONDS: Final = 2.0
_INTERRUPT_SECONDS: Final = 3.0
_log = structlog.get_logger()


async def begin(
    session: LiveSession,
    changes: Changes,
    prompt: list[dict[str, Any]],
    principal: str,
) -> int:
    """Sends a prompt; returns the number of the turn. The caller holds the lock and commits. Raises
    SessionBusy."""
    stored = session.stored
    if stored.state != "idle":
        raise SessionBusy(
            f"cannot prompt session {stored.session_id}: it is {stored.state}",
            hint="wait for the end of the turn, or cancel it",
            id=stored.session_id,
        )
    stored.state, stored.turn = "busy", stored.turn + 1
    stored.prompts += 1
    session.stored.cancelled = False
    session.append(changes, "prompt", {"prompt": prompt, "principal": principal})
    inner = session.paths.to_agent(prompt)
    if stored.history_due:
        items = await session.environment.store.newest_items(stored.session_id, 4096)
        can = (stored.capabilities.get("promptCapabilities") or {}).get("embeddedContext")
        inner = [_history(items, as_resource=bool(can)), *inner]
        stored.history_due = False
    session.send_call(
        changes,
        "session/prompt",
        {"sessionId": stored.inner_id, "prompt": inner},
        turn=stored.turn,
    )
    watch(session)
    return stored.turn


def watch(session: LiveSession) -> None:
    """Cancels the turn under way when its time is up; goes on with ending one that is cancelled."""
    if session.stored.cancelled:
        session.spawn(_enforce_cancel(session, session.stored.turn), "cancel")
        return
    session.spawn(_bound(session, session.stored.turn, session.agent.acp.turn_seconds), "turn")


async def cancel(session: LiveSession, changes: Changes) -> None:
    """Nothing without a turn. The caller holds the lock and commits."""
    stored = session.stored
    if stored.state != "busy" or session.stored.cancelled:
        return
    session.stored.cancelled = True
    session.permissions.cancel_all(changes)
    session.notify(changes, "session/cancel", {"sessionId": stored.inner_id})
    session.spawn(_enforce_cancel(session, stored.turn), "cancel")


async def _bound(session: LiveSession, turn: int, seconds: float) -> None:
    if await _wait_end(session, turn, seconds):
        return
    async with session.lock:
        changes = Changes()
        session.notice(changes, f"the turn took longer than {seconds:g} s, and is cancelled")
        await cancel(session, changes)
        await session.commit(changes)


async def _enforce_cancel(session: LiveSession, turn: int) -> None:
    seconds = session.environment.config().acp.cancel_seconds
    if await _wait_end(session, turn, seconds):
        return
    if session.program is not None:
        await session.program.signal("INT")
    if await _wait_end(session, turn, _INTERRUPT_SECONDS):
        return
    while session.ended_turn < turn and session.program is not None:
        session.ending = "cancel"
        try:
            await session.program.end(_END_SECONDS)
        except SlotUnavailable:  # agent-host starts again
            _log.info("agent not ended yet", session_id=session.stored.session_id)
        await _wait_end(session, turn, _END_SECONDS)


async def _wait_end(session: LiveSession, turn: int, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            while session.ended_turn < turn:
                await session.wait()
    except TimeoutError:
        return False
    return True


async def wait_for_end(session: LiveSession, turn: int, wait_s: float) -> PromptResult:
    """What the agent said, or the turn alone while it goes on."""
    try:
        async with asyncio.timeout(wait_s):
            while session.ended_turn < turn:
                await session.wait()
    except TimeoutError:
        return PromptResult(turn=turn)
    text, since = "", 0
    while items := await session.environment.store.items(
        session.stored.session_id, since, _PAGE, whole=True
    ):
        for item in items:
            since = item.cursor
            if item.turn != turn:
                continue
            if item.kind == "stop":
                return PromptResult(
                    turn=turn,
                    stop_reason=str(item.data["stop_reason"]),
                    text=text,
                    cursor=item.cursor,
                )
            if item.data.get("sessionUpdate") == "agent_message_chunk":
                text = (text + said(item))[:MAX_TEXT]
    return PromptResult(turn=turn)


def _history(items: list[SessionItem], *, as_resource: bool) -> dict[str, Any]:
    """The end of a transcript, marked as history: a resource that a prompt carries, or its text for
    an agent that takes none."""
    text = ""
    for item in reversed(items):
        line = said(item)
        if len(text) + len(line) > MAX_HISTORY:
            break
        text = line + text
    text = f"History of this session, for your information only:\n{text}"
    if not as_resource:
        return {"type": "text", "text": f"{text}\nEnd of the history.\n"}
    resource = {"uri": "agentbox:transcript", "mimeType": "text/plain", "text": text}
    return {"type": "resource", "resource": resource}


def said(item: SessionItem) -> str:
    """What was said in an item, "" where nothing was."""
    if item.kind == "prompt":
        blocks = item.data.get("prompt")
        texts = [_text(block) for block in blocks] if isinstance(blocks, list) else []
        return "".join(f"user: {text}\n" for text in texts if text)
    if item.kind == "update" and item.data.get("sessionUpdate") == "agent_message_chunk":
        return _text(item.data.get("content"))
    if item.kind == "update" and item.data.get("sessionUpdate") == "tool_call":
        return f"\n[tool: {item.data.get('title', '')}]\n"
    return "\n" if item.kind == "stop" else ""


def _text(content: object) -> str:
    text = content.get("text") if isinstance(content, Mapping) else ""
    return text if isinstance(text, str) else ""
