"""The log of a task: the output of its agent, then the task itself."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import structlog

from agentbox.api.tasks.run import TaskRun
from agentbox.api.tasks.slot_retry import RETRY_SECONDS
from agentbox.contracts.orchestrator import StreamItem
from agentbox.contracts.task_records import Task
from agentbox.core import clock
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.slot_errors import AdapterError, CursorExpired, NotFound

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots

_log = structlog.get_logger()


class TaskOutput:
    """`show` returns the task, or raises NotFound; `run_of` its current run, if any."""

    def __init__(
        self,
        slots: "Slots",
        show: Callable[[str], Awaitable[Task]],
        run_of: Callable[[str], TaskRun | None],
    ) -> None:
        self._slots = slots
        self._show = show
        self._run_of = run_of

    async def check(self, task_id: str, since: int) -> Task:
        """The task. Raises NotFound for an unknown task, CursorExpired when output after `since`
        was dropped already.
        """
        task, run = await self._show(task_id), self._run_of(task_id)
        agent_id = run.agent_id if run else task.agent_id
        if agent_id is None:
            return task
        try:
            async with aclosing(self._stream(agent_id, since, follow=False)) as items:
                await anext(items, None)
        except CursorExpired:
            raise
        except AdapterError as error:
            _log.info("output not checked", task_id=task_id, reason=error.message)
        return task

    def is_attached(self, task: Task, reader: str) -> bool:
        """Whether its output waits for that reader: the reader submitted it as attached, and it
        runs.
        """
        run = self._run_of(task.task_id)
        return run is not None and run.entry.attached and task.creator == reader

    async def follow(
        self, task_id: str, since: int, follow: bool, reader: str
    ) -> AsyncIterator[ServerSentEvent]:
        """The agent's output after `since`, then the task itself as an event `task` (when it has
        ended, or without follow).

        `reader` is the principal that reads: the output waits for the submitter of an attached
        task.
        """
        last = since
        while True:
            task, run = await self._show(task_id), self._run_of(task_id)
            if run is not None and follow:
                await run.wait_agent_or_done()
            ended = run is None and (not follow or task.final)
            if (agent_id := run.agent_id if run else task.agent_id) is not None:
                items = self._stream(
                    agent_id, last, follow=follow, attached=self.is_attached(task, reader)
                )
                async with aclosing(self._events(agent_id, last, items, ended)) as events:
                    async for event in events:
                        last = int(event.id)
                        yield event
            if run is not None and follow:
                await run.done.wait()
            elif not follow or task.final:
                break
            else:
                await _pause()
        yield ServerSentEvent(str(last), "task", (await self._show(task_id)).to_wire())

    async def _events(
        self, agent_id: str, last: int, items: Any, ended: bool
    ) -> AsyncGenerator[ServerSentEvent, None]:
        """The output in the orchestrator. While the task runs, an unavailable orchestrator only
        ends the batch. Raises its error when the task has `ended`, so that the reader retries;
        output of an unknown agent is reported as truncated.
        """
        try:
            async with aclosing(items):
                async for item in items:
                    yield ServerSentEvent(str(item.cursor), item.kind, item.to_wire())
        except CursorExpired:
            raise
        except NotFound:
            yield _truncated_event(last)
        except AdapterError as error:
            if ended:
                raise
            _log.info("output ends early", agent_id=agent_id, reason=error.message)
            await _pause()

    def _stream(self, agent_id: str, since: int, *, follow: bool, attached: bool = False) -> Any:
        return self._slots.orchestrator.stream(
            agent_id, since=since, follow=follow, attached=attached
        )


def _truncated_event(cursor: int) -> ServerSentEvent:
    """Reports that later output was dropped."""
    data = json.dumps({"state": "truncated", "stream": "stdout"}, separators=(",", ":")).encode()
    item = StreamItem(cursor=cursor, ts=clock.now(), generation=0, kind="state", data=data)
    return ServerSentEvent(str(cursor), "state", item.to_wire())


async def _pause() -> None:
    await asyncio.sleep(RETRY_SECONDS[0])
