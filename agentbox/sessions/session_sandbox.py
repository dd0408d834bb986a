"""The sandbox of a session at agent-host."""

from typing import TYPE_CHECKING

from agentbox.contracts.sandboxes import SessionSandbox
from agentbox.core.slot_errors import AdapterError, AdapterTimeout, SlotUnavailable

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession


async def find_or_make(session: "LiveSession") -> None:
    """A repeated call finds the same one, also after an answer that was lost. Raises what spawning
    an agent raises."""
    stored = session.stored
    stored.has_sandbox = True
    try:
        with session.as_caller():
            sandbox = await session.environment.host.create_session_sandbox(
                SessionSandbox(
                    agent=stored.agent,
                    name=stored.name or stored.session_id,
                    labels={**stored.labels, "session": stored.session_id},
                ),
                request_id=stored.session_id,
            )
    except (SlotUnavailable, AdapterTimeout):  # it may be there
        raise
    except AdapterError:
        stored.has_sandbox = False
        raise
    stored.sandbox_id = sandbox.sandbox_id
