"""Generations of the sandbox of a session: suspended and started again on request."""

import asyncio
from collections.abc import Callable

from agentbox.agents.admission.admit import Requester
from agentbox.agents.registry.admissions import admit_again
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.agent_registry import AgentRegistry
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.runs.session_runner import SessionRunner


async def suspend(registry: AgentRegistry, entry: AgentRecord, grace: float | None) -> None:
    """Return when no process of it runs. `grace` None: that of the slot."""
    runner = registry.runners.get(entry.agent_id)
    if isinstance(runner, SessionRunner):
        await runner.suspend(registry.host.config.grace_seconds if grace is None else grace)


async def start_again(
    registry: AgentRegistry,
    entry: AgentRecord,
    requester: Requester,
    on_created: Callable[[AgentRunner], None],
) -> None:
    """One more generation of a suspended one, with the rights of now; nothing if it runs.
    `on_created` is called before the start. Raises as `AgentRegistry.spawn`."""
    while (running := registry.runners.get(entry.agent_id)) is not None:
        if running.sandbox is not None:
            return
        await asyncio.shield(running.done)
    registry.check_open()
    admit_again(registry.host, entry, requester)
    stream = registry.streams[entry.agent_id]
    stream.reopen()
    runner = SessionRunner(registry.host, entry, stream)
    registry.runners[entry.agent_id] = runner
    on_created(runner)
    try:
        await runner.start_again()
        registry.revoker.watch(entry)
    except BaseException:
        registry.runners.pop(entry.agent_id)
        stream.close()
        runner.done.set_result(None)
        raise
