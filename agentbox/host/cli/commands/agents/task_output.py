"""The output of a task: where it is written, and the reader of its log."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbox.core.errors import AgentboxError
from agentbox.host.cli.agent_output import AgentOutput

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.orchestrator import StreamItem
    from agentbox.contracts.task_records import Task

OUTPUT_DROPPED = "part of the output is missing: the box no longer stores it"


class TerminalSink:
    """Writes each chunk to stdout or stderr as it arrives."""

    def __init__(self) -> None:
        self._output = AgentOutput()

    def write(self, item: StreamItem) -> None:
        self._output.write(item.kind, item.data)

    def close(self) -> None:
        self._output.close()


class BufferSink:
    """Collects the output until the end."""

    def __init__(self) -> None:
        self.items: list[StreamItem] = []

    def write(self, item: StreamItem) -> None:
        self.items.append(item)

    def close(self) -> None:
        """Does nothing."""

    def text(self, kind: str) -> str:
        return b"".join(item.data for item in self.items if item.kind == kind).decode(
            "utf-8", "replace"
        )


Sink = TerminalSink | BufferSink


class LogReader:
    """Reads the log of one task, resuming at its cursor. `review`: the summary of the agent's
    changes; `output_lost`: part of the output is missing, which is reported on stderr."""

    def __init__(self, client: BoxClient, task_id: str, sink: Sink) -> None:
        self._client, self.task_id, self._sink = client, task_id, sink
        self._cursor = 0
        self.review: Mapping[str, Any] | None = None
        self.output_lost = False

    def read(self) -> Task:
        """Reads the log to its end and returns the finished task."""
        from agentbox.client import ApiError

        while True:
            try:
                return self._read_items()
            except ApiError as error:
                if error.code != "cursor-expired":
                    raise
                self._report_loss(OUTPUT_DROPPED)
                self._cursor = int(error.problem["oldest"])

    def _read_items(self) -> Task:
        from agentbox.contracts.task_records import Task

        for item in self._client.task_logs(self.task_id, since=self._cursor):
            if isinstance(item, Task):
                return item
            self._sink.write(item)
            self._cursor = item.cursor
            if item.kind == "state":
                self._handle_state(json.loads(item.data))
        raise AgentboxError(f"cannot follow task {self.task_id}: its log ended without a result")

    def _handle_state(self, message: Mapping[str, Any]) -> None:
        if message.get("state") == "review":
            self.review = {name: value for name, value in message.items() if name != "state"}
        elif message.get("state") == "truncated":
            self._report_loss(OUTPUT_DROPPED)
        elif message.get("state") == "output-lost":
            self._report_loss(
                f"{message.get('bytes')} bytes of output were lost: the box could not store them"
            )

    def _report_loss(self, message: str) -> None:
        self.output_lost = True
        print(f"agentbox: {message}", file=sys.stderr, flush=True)
