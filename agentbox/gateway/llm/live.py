"""Live keys of providers (models, calls at once, seconds of a call): an applied manifest holds for the next call."""

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from agentbox.errors import AgentboxError
from agentbox.gateway.llm.config import LlmConfig
from agentbox.settings import Paths
from agentbox.supervision.boot_record import load_plan

if TYPE_CHECKING:
    from agentbox.gateway.llm.app import LlmApp

log = structlog.get_logger()
LOOK_SECONDS: Final = 1.0


async def follow(app: "LlmApp", paths: Paths) -> None:
    """Looks once a second whether another plan was applied, until cancelled."""
    seen = _stamp(paths)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if (now := _stamp(paths)) != seen and now is not None:
            seen = now
            try:
                app.reload(LlmConfig.from_plan(load_plan(paths.applied_plan), paths))
            except AgentboxError as error:
                log.warning("the applied plan cannot be read; providers stay as they were", reason=error.message)


def _stamp(paths: Paths) -> tuple[int, int] | None:
    try:
        found = paths.applied_plan.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
