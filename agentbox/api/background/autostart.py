"""Starts the agents with `agents.<name>.autostart`, once per boot, through the orchestrator
slot.
"""

import asyncio
from typing import Final

import structlog

from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.orchestrator import AgentSpec, Orchestrator
from agentbox.core.ids import new_trace_id
from agentbox.core.slot_errors import AdapterError
from agentbox.plan.model import Plan

_PAUSE_SECONDS: Final = 1.0
_PRINCIPAL: Final = "urn:agentbox:program:management-api"
_log = structlog.get_logger()


def autostart_names(plan: Plan) -> tuple[str, ...]:
    """The names of these agents. Empty where agents are not processes of this box."""
    if plan.slots["orchestrator"].use != "local-process":
        return ()
    return tuple(
        name for name, agent in sorted(plan.agents.items()) if agent.enabled and agent.autostart
    )


async def autostart(
    plans: PlanSource, boot_id: str, orchestrator: Orchestrator, ready_once: asyncio.Event
) -> None:
    """Returns once each start was requested. The request id contains the boot id: a restarted API
    does not start one twice.

    Waits until the box was ready; temporary errors are retried, permanent ones are logged.
    """
    await ready_once.wait()
    for name in autostart_names(plans.current):
        while True:
            if await _start_agent(orchestrator, boot_id, name):
                break
            await asyncio.sleep(_PAUSE_SECONDS)


async def _start_agent(orchestrator: Orchestrator, boot_id: str, name: str) -> bool:
    """False when it should be retried."""
    try:
        with as_caller(
            CallContext(
                principal=_PRINCIPAL, request_id=f"autostart:{name}", trace_id=new_trace_id()
            )
        ):
            request_id = f"autostart:{boot_id}:{name}"
            await orchestrator.spawn(AgentSpec(name=name, agent=name), request_id=request_id)
    except AdapterError as error:
        _log.error(
            "agent not started with the box",
            name=name,
            reason=error.message,
            again=error.retryable,
        )
        return not error.retryable
    return True
