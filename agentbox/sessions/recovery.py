"""Sessions after session-host was killed: their agents went on."""

from typing import TYPE_CHECKING

from agentbox.sessions import ending, turns
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession


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
    """It was killed while the agent started: the next prompt, or load, starts it anew."""
    stored = session.stored
    if stored.program:
        session.ending = "start"
        session.make_program().attach()
        assert session.program is not None
        await session.program.end(0)
    async with session.lock:
        changes = Changes()
        opened = bool(stored.inner_id)
        stored.loading = False
        session.set_state(
            changes, "suspended" if opened else "failed", "session-host ended while it started"
        )
        await session.commit(changes)
