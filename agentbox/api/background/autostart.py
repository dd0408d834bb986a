"""Starts the agents with `agents.<name>.autostart`, once per boot, through the orchestrator
slot.
"""

import asyncio
from typing import Final

import structlog

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.api.parts import ApiParts
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.ids import new_trace_id
from agentbox.core.slot_errors import AdapterError

_PAUSE_SECONDS: Final = 1.0
_PRINCIPAL: Final = "urn:agentbox:program:management-api"
_log = structlog.get_logger()


def autostart_names(services: ApiParts) -> tuple[str, ...]:
    """The names of these agents. Empty where agents are not processes of this box."""
    plan = services.plan
    if plan.slots["orchestrator"].use != "local-process":
        return ()
    return tuple(
        name for name, agent in sorted(plan.agents.items()) if agent.enabled and agent.autostart
    )


async def autostart(services: ApiParts) -> None:
    """Returns once each start was requested. The request id contains the boot id: a restarted API
    does not start one twice.

    Waits until the box was ready; temporary errors are retried, permanent ones are logged.
    """
    await services.ready_once.wait()
    for name in autostart_names(services):
        while True:
            if await _start_agent(services, name):
                break
            await asyncio.sleep(_PAUSE_SECONDS)


async def _start_agent(services: ApiParts, name: str) -> bool:
    """False when it should be retried."""
    try:
        with as_caller(
            CallContext(
                principal=_PRINCIPAL, request_id=f"autostart:{name}", trace_id=new_trace_id()
            )
        ):
            request_id = f"autostart:{services.boot.boot_id}:{name}"
            await services.slots.orchestrator.spawn(
                AgentSpec(name=name, agent=name), request_id=request_id
            )
    except AdapterError as error:
        _log.error(
            "agent not started with the box",
            name=name,
            reason=error.message,
            again=error.retryable,
        )
        return not error.retryable
    return True
