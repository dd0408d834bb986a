"""What a task's reader gets: the output of its agent, then the task itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import structlog

from agentbox.adapters.errors import AdapterError, CursorExpired
from agentbox.api.reply import SentEvent
from agentbox.api.tasks.run import RETRY_SECONDS, Run
from agentbox.client.records import Task

if TYPE_CHECKING:
    from agentbox.adapters.container import Container

_log = structlog.get_logger()


class Output:
    """`show` gives the task, or raises NotFound; `run_of` the run that is under way, if one is."""

    def __init__(
        self, container: "Container", show: Callable[[str], Awaitable[Task]], run_of: Callable[[str], Run | None]
    ) -> None:
        self._container = container
        self._show = show
        self._run_of = run_of

    async def check(self, task_id: str, since: int) -> None:
        """Raises NotFound for no task of ours, CursorExpired when output after `since` was dropped already."""
        task, run = await self._show(task_id), self._run_of(task_id)
        agent_id = run.agent_id if run else task.agent_id
        if agent_id is None:
            return
        try:
            async with aclosing(self._stream(agent_id, since, follow=False)) as items:
                await anext(items, None)
        except CursorExpired:
            raise
        except AdapterError as error:
            _log.info("output not checked", task_id=task_id, reason=error.message)

    async def follow(self, task_id: str, since: int, follow: bool) -> AsyncIterator[SentEvent]:
        """The agent's output after `since`, then the task itself as an event `task` (when it has ended, or not to follow)."""
        last = since
        while True:
            task, run = await self._show(task_id), self._run_of(task_id)
            if run is not None and follow:
                await run.known_or_done()
            if (agent_id := run.agent_id if run else task.agent_id) is not None:
                async with aclosing(self._events(agent_id, last, follow)) as events:
                    async for event in events:
                        last = int(event.id)
                        yield event
            if run is not None and follow:
                await run.done.wait()
            elif not follow or task.final:
                break
            else:
                await _settle()
        yield SentEvent(str(last), "task", (await self._show(task_id)).to_wire())

    async def _events(self, agent_id: str, since: int, follow: bool) -> Any:
        """What the orchestrator has. When it is away, or knows the agent no more, that is all there is for now."""
        try:
            async with aclosing(self._stream(agent_id, since, follow=follow)) as items:
                async for item in items:
                    yield SentEvent(str(item.cursor), item.kind, item.to_wire())
        except CursorExpired:
            raise
        except AdapterError as error:
            _log.info("output ends early", agent_id=agent_id, reason=error.message)
            await _settle()

    def _stream(self, agent_id: str, since: int, *, follow: bool) -> Any:
        return self._container.orchestrator.stream(agent_id, since=since, follow=follow)


async def _settle() -> None:
    await asyncio.sleep(RETRY_SECONDS[0])
