"""Tasks over HTTP."""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from agentbox.api.auth.authentication import Caller, require
from agentbox.api.tasks.runner import TaskRunner
from agentbox.contracts.tasks import TaskBody
from agentbox.core.http.responses import EventStreamResponse


class TaskHandlers:
    """`closing` ends the streams of logs."""

    def __init__(self, tasks: TaskRunner, closing: asyncio.Event) -> None:
        self._tasks, self._closing = tasks, closing

    async def submit(self, caller: Caller, task: TaskBody) -> Mapping[str, Any]:
        if task.spec.workspace == "direct":
            require(caller, ("admin",))
        queued = await self._tasks.submit(task, caller.principal, admin=caller.has_scope("admin"))
        return {"task_id": queued.task_id, "state": queued.state}

    async def list_tasks(self, limit: int, cursor: str | None) -> Mapping[str, Any]:
        items, next_cursor = await self._tasks.page(limit, cursor)
        return {"items": [task.to_wire() for task in items], "next_cursor": next_cursor}

    async def get(self, id: str) -> Mapping[str, Any]:
        return (await self._tasks.show(id)).to_wire()

    async def cancel(self, caller: Caller, id: str) -> Mapping[str, Any]:
        """Returns when the agent has ended and the bead is closed."""
        return (await self._tasks.cancel(id, caller.principal)).to_wire()

    async def logs(self, caller: Caller, id: str, since: int, follow: bool) -> Response:
        """An unknown task is 404, and a trimmed cursor 410, before the first byte."""
        output, reader = self._tasks.output, caller.principal
        task = await output.check(id, since)
        events = output.follow(id, since, follow, reader)
        # An attached reader may be slow: the agent waits for it, and its time limit bounds both.
        stall_seconds = task.timeout_s if output.is_attached(task, reader) else None
        return EventStreamResponse(events, self._closing, stall_seconds=stall_seconds)
