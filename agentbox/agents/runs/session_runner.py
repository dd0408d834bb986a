"""Runs the sandbox of a session: whatever ends its processes, it is suspended until it is ended."""

import asyncio

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.runs.agent_runner import AgentRunner
from agentbox.agents.streams.stream_log import StreamLog


class SessionRunner(AgentRunner):
    """One generation. `done` is set when it has ended; only `end` makes that permanent."""

    _suspending = False

    async def start_again(self) -> None:
        """One more generation of a suspended agent. Raises SpawnError; then it is suspended as
        before."""
        self.entry.generation += 1
        self._set_state("starting")
        try:
            await self._spawn("agent.resumed")
        except BaseException:
            self._set_state("suspended")
            raise
        self._task = asyncio.create_task(self._run(), name=f"agent-{self.entry.agent_id}")

    async def suspend(self, grace: float) -> None:
        """End the tree; return when no process runs."""
        self._suspending = True
        if self._process is not None:
            self._set_state("stopping")
            self._process.end(grace)
        await asyncio.shield(self.done)

    @property
    def _must_end(self) -> bool:
        return self._suspending or super()._must_end

    async def _next_generation(self) -> bool:
        if self.entry.stop_requested:
            return await super()._next_generation()
        entry, end = self.entry, self._exit_record()
        self._set_state("suspended")
        self.output.append_item("exit", end.to_wire())
        entry.exit_pending = False
        pending, self._pending_events = self._pending_events, []
        suspended = self._lifecycle_event("agent.suspended", exit=end.to_wire())
        await self.host.save(entry, *pending, suspended)
        return False


def make_runner(host: HostState, entry: AgentRecord, stream: StreamLog) -> AgentRunner:
    """By the kind of the agent."""
    kind = SessionRunner if entry.kind == "session" else AgentRunner
    return kind(host, entry, stream)
