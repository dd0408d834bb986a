"""Sessions after session-host was killed: their agents went on."""

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from agentbox.core.slot_errors import AdapterError, SlotUnavailable
from agentbox.sessions import ending, opening, turns
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession

_RETRY_SECONDS: Final = 0.2
_log = structlog.get_logger()


def go_on(session: "LiveSession") -> None:
    """After session-host was killed: the agent went on."""
    stored = session.stored
    if stored.state == "starting":
        session.spawn(_start_again(session), "start again")
    elif stored.has_program and stored.program:
        session.make_program().attach()
        session.answer_waiting_requests()
        if stored.stopping:
            session.spawn(ending.stop_turn(session), "stop")
        elif stored.state == "busy":
            turns.watch(session)


async def _start_again(session: "LiveSession") -> None:
    """It was killed while the agent started, perhaps as a program that is not in the store. What
    runs is ended; a session that is opened is opened anew, and one that was resumed waits for the
    next prompt, or load. Requests that name it wait meanwhile.
    """
    async with session.opening:
        while True:
            try:
                await _end_start(session)
                return
            except SlotUnavailable as error:  # agent-host starts too
                _log.info("start not ended", reason=error.message)
                await asyncio.sleep(_RETRY_SECONDS)
            except AdapterError as error:  # the session has its reason
                _log.warning("not started again", reason=error.message)
                return


async def _end_start(session: "LiveSession") -> None:
    stored, host = session.stored, session.environment.host
    if not stored.inner_id:
        await opening.create(session, again=True)
        return
    try:
        await host.suspend_sandbox(stored.sandbox_id, grace_s=0)
    except SlotUnavailable:
        raise
    except AdapterError as error:  # no sandbox: resuming it says why
        _log.warning("not suspended", reason=error.message)
    async with session.lock:
        changes = Changes()
        stored.loading = False
        session.set_state(changes, "suspended", "session-host ended while it started")
        await session.commit(changes)
