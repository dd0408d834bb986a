"""Modes and options of an agent, which a client chooses."""

from typing import TYPE_CHECKING

from agentbox.contracts.sessions import SessionConfig
from agentbox.core.slot_errors import ValidationError
from agentbox.sessions.agent_messages import bounded
from agentbox.sessions.store import Changes

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession


async def configure(session: "LiveSession", config: SessionConfig) -> None:
    """Raises ValidationError without a setting."""
    seconds = session.environment.config().acp.new_seconds
    inner = session.stored.inner_id
    if config.mode:
        await session.call("session/set_mode", {"sessionId": inner, "modeId": config.mode}, seconds)
        session.stored.modes = {**session.stored.modes, "currentModeId": config.mode}
    elif config.option:
        params = {"sessionId": inner, "configId": config.option, "value": config.value}
        told = await session.call("session/set_config_option", params, seconds)
        session.stored.config = bounded(list(told["configOptions"]), [])
    else:
        raise ValidationError(
            "cannot configure the session: neither a mode nor an option is given",
            errors=[{"pointer": "", "detail": "mode or option must be set"}],
        )
    async with session.lock:
        await session.commit(Changes())
