"""What the bounds of sessions ask for from time to time: idle ones are suspended, the oldest of
those are closed, ended ones are forgotten, and what is too much of a transcript goes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from agentbox.core import clock
from agentbox.core.slot_errors import AdapterError
from agentbox.sessions import ending
from agentbox.sessions.box_approvals import BoxApprovals
from agentbox.sessions.ended import forget_ended
from agentbox.sessions.transcript_bounds import drop_bodies

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

MAX_ITEMS: Final = 1_000_000  # of a transcript: the record that they were stays with each
_SWEEP_SECONDS: Final = 5.0
_log = structlog.get_logger()


class Upkeep:
    """Of all sessions."""

    def __init__(self, manager: "SessionManager") -> None:
        self._manager = manager
        self._approvals = BoxApprovals(manager)

    async def run(self) -> None:
        """Without end."""
        await asyncio.gather(self._approvals.run(), self._sweep_often())

    async def _sweep_often(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        """What the bounds of sessions ask for now; it is done every few seconds."""
        await self._manager.editors.drop_left()
        steps: list[Callable[[], Awaitable[None]]] = [
            *(partial(self._sweep_one, one) for one in self._manager.live_sessions()),
            self._close_excess,
            partial(forget_ended, self._manager),
        ]
        for step in steps:
            try:
                await step()
            except (AdapterError, TimeoutError) as error:
                _log.warning("session not swept", reason=str(error))

    async def _sweep_one(self, session: "LiveSession") -> None:
        stored = session.stored
        await drop_bodies(session)
        if not stored.is_open:
            await ending.seal(session)
            return
        if stored.agent not in self._manager.config.agents:
            return
        if stored.head > MAX_ITEMS:
            await self._manager.close_session(stored.session_id, principal="agentbox")
            return
        acp = session.agent.acp
        age = time.time() - clock.from_wire(stored.updated_at).timestamp()
        if stored.state == "idle" and acp.idle_suspend_seconds and not session.has_client:
            if age > acp.idle_suspend_seconds:
                await self._manager.suspend(session)
        elif stored.state == "suspended" and age > acp.keep_days * 86_400:
            await self._manager.close_session(stored.session_id, principal="agentbox")

    async def _close_excess(self) -> None:
        suspended = sorted(
            (one for one in self._manager.stored_sessions() if one.state == "suspended"),
            key=lambda one: one.updated_at,
        )
        for stored in suspended[: max(0, len(suspended) - self._manager.config.acp.max_suspended)]:
            await self._manager.close_session(stored.session_id, principal="agentbox")
