"""Output of one agent, and its states and exits between, stored in its stream."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.runs.pump import Pump
from agentbox.agents.streams.stream_log import StreamLog
from agentbox.contracts.orchestrator import StreamKind
from agentbox.sandbox.launcher.client import AgentProcess

log = structlog.get_logger()


class OutputRecorder:
    """Over all generations. `on_output` receives each piece of output before it is stored."""

    def __init__(self, entry: AgentRecord, stream: StreamLog) -> None:
        self._entry, self._stream = entry, stream
        self.on_output: Callable[[StreamKind, bytes], None] = lambda kind, data: None
        self._lost_bytes = 0  # bytes of output that could not be stored
        self._pumps: tuple[Pump, ...] = ()

    def begin(self, process: AgentProcess) -> None:
        """Read the output of a new generation."""
        self._pumps = (self._pump(process.stdout, "stdout"), self._pump(process.stderr, "stderr"))
        self._stream.on_writable = self._resume

    def end(self) -> None:
        """Store the rest of the generation that has ended, and report what was lost."""
        for pump in self._pumps:
            pump.finish()
        self._stream.on_writable, self._pumps = None, ()  # the stream outlives this object
        if self._lost_bytes:
            self.append_item("state", {"state": "output-lost", "bytes": self._lost_bytes})
            self._lost_bytes = 0

    def append_item(self, kind: StreamKind, value: Mapping[str, Any]) -> None:
        """A state or an exit. If the disk fails, it is logged and the agent continues."""
        try:
            self._stream.append_json(kind, self._entry.generation, value)
        except OSError as error:
            log.error(
                "cannot store state",
                agent_id=self._entry.agent_id,
                reason=error.strerror,
                what=value,
            )

    def _pump(self, descriptor: int, kind: StreamKind) -> Pump:
        return Pump(descriptor, partial(self._store, kind), partial(self._stream.is_full, kind))

    def _resume(self) -> None:
        for pump in self._pumps:
            pump.resume()

    def _store(self, kind: StreamKind, data: bytes) -> None:
        """If the disk fails, the output is lost and reported once at the end; the agent
        continues."""
        self.on_output(kind, data)
        try:
            self._stream.append(kind, self._entry.generation, data)
        except OSError as error:
            if not self._lost_bytes:
                log.error(
                    "cannot store output", agent_id=self._entry.agent_id, reason=error.strerror
                )
            self._lost_bytes += len(data)
