"""Sessions that are over: closed or failed ones are forgotten with their transcripts, after
`keep_days` or when there are too many.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import structlog

from agentbox.core import clock

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession
    from agentbox.sessions.manager import SessionManager

MAX_ENDED: Final = 256  # that are kept, the newest ones
_DAY: Final = 86_400  # seconds
_log = structlog.get_logger()


async def forget_ended(manager: "SessionManager") -> None:
    """Those that are due, if the journal has what happened in them. Raises BackendError."""
    for session in list(_due(manager)):
        session_id = session.stored.session_id
        if not await manager.store.forget(session_id):
            continue  # the journal is behind
        manager.remove(session_id)
        await session.close()
        _log.info("session forgotten", session_id=session_id)


def _due(manager: "SessionManager") -> Iterator["LiveSession"]:
    ended = sorted(
        (
            one
            for one in manager.live_sessions()
            if not one.stored.is_open and not one.stored.has_sandbox
        ),
        key=lambda one: one.stored.updated_at,
        reverse=True,
    )
    for place, session in enumerate(ended):
        age = time.time() - clock.from_wire(session.stored.updated_at).timestamp()
        known = manager.config.agents.get(session.stored.agent)
        if place >= MAX_ENDED or (known is not None and age > known.acp.keep_days * _DAY):
            yield session
