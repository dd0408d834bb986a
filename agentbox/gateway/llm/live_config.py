"""Live settings of providers (models, concurrency, timeout): an applied manifest takes effect with
the next call."""

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from agentbox.box.supervision import applied_plan
from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.gateway.llm.config import LlmConfig

if TYPE_CHECKING:
    from agentbox.gateway.llm.app import LlmApp

log = structlog.get_logger()
POLL_SECONDS: Final = 1.0


async def watch_config(app: "LlmApp", paths: Paths) -> None:
    """Polls for an applied plan every second, until cancelled."""
    applied_mark = applied_plan.applied_version(paths)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if (mark := applied_plan.applied_version(paths)) != applied_mark and mark is not None:
            applied_mark = mark
            try:
                app.reload(LlmConfig.from_plan(load_plan(paths.applied_plan), paths))
            except AgentboxError as error:
                log.warning(
                    "cannot read the applied plan; providers are unchanged",
                    reason=error.message,
                )
