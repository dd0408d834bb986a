"""The client of a box. Clients of resources are imported on first use, since a command uses only
one."""

from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbox.client.async_client.api_caller import AsyncApiCaller
from agentbox.client.records import LogItem, Readiness, Submitted, Task
from agentbox.client.task_call import parse_log_event, task_body

if TYPE_CHECKING:
    from agentbox.client.async_client.admin import AsyncMeshClient, AsyncTokensClient
    from agentbox.client.async_client.agents import AsyncAgentsClient
    from agentbox.client.async_client.beads import AsyncBeadsClient, AsyncEventsClient
    from agentbox.client.async_client.reviews import AsyncApprovalsClient, AsyncReviewsClient
    from agentbox.client.async_client.slots import AsyncMemoryClient, AsyncPodsClient
    from agentbox.client.async_client.states import AsyncStatesClient


class AsyncBoxClient(AsyncApiCaller):
    """Calls the API of a box. Raises ApiError for an error response, BoxUnreachable without a
    response."""

    async def ready(self) -> Readiness:
        """The cached readiness; not ready is not an error."""
        return Readiness.from_wire(await self.call("ready", accepted=(503,)))

    async def livez(self) -> Mapping[str, Any]:
        """{live, uptime}."""
        data: Mapping[str, Any] = await self.call("livez")
        return data

    async def health(self) -> Mapping[str, Any]:
        """The state of each component."""
        data: Mapping[str, Any] = await self.call("health")
        return data

    async def meta(self) -> Mapping[str, Any]:
        """Digests, slots, boot."""
        data: Mapping[str, Any] = await self.call("meta")
        return data

    async def boot(self) -> Mapping[str, Any]:
        """The record of this boot."""
        data: Mapping[str, Any] = await self.call("boot")
        return data

    async def drain(self) -> Mapping[str, Any]:
        """Starts the drain."""
        data: Mapping[str, Any] = await self.call("drain")
        return data

    async def tasks(
        self, *, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Task], str | None]:
        """A page of tasks and the next cursor."""
        page = await self.call("list_tasks", query={"limit": limit, "cursor": cursor})
        return [Task.from_wire(item) for item in page["items"]], page["next_cursor"]

    async def config_apply(self) -> Mapping[str, Any]:
        """Applies the live keys of the mounted manifest."""
        data: Mapping[str, Any] = await self.call("config_apply", wait_s=60)
        return data

    async def openapi(self) -> Mapping[str, Any]:
        """The API as OpenAPI 3.1."""
        data: Mapping[str, Any] = await self.call("openapi")
        return data

    async def submit_task(
        self, spec: Mapping[str, Any], *, timeout_s: float = 600, **options: Any
    ) -> Submitted:
        """Queues a run. `spec` is an AgentSpec in JSON; `options` are the other members of a
        TaskBody."""
        return Submitted.from_wire(
            await self.call("submit_task", body=task_body(spec, timeout_s, options))
        )

    async def task(self, task_id: str) -> Task:
        """One task."""
        return Task.from_wire(await self.call("get_task", {"id": task_id}))

    async def cancel_task(self, task_id: str) -> Task:
        """Cancels a task; returns when its agent has ended."""
        return Task.from_wire(await self.call("cancel_task", {"id": task_id}, wait_s=90))

    async def task_logs(
        self, task_id: str, *, since: int = 0, follow: bool = True, reconnect_timeout: float = 60.0
    ) -> AsyncIterator[LogItem | Task]:
        """Output of a task after the cursor `since`, finally the Task itself. Survives a restart of
        the API."""
        query = {"follow": str(follow).lower()}
        start = str(since) if since else ""
        events = self.stream(
            "task_logs",
            {"id": task_id},
            query=query,
            last="task",
            since=start,
            reconnect_timeout=reconnect_timeout,
        )
        async for event in events:
            yield parse_log_event(event)

    @cached_property
    def pods(self) -> "AsyncPodsClient":
        """Named objects."""
        from agentbox.client.async_client.slots import AsyncPodsClient

        return AsyncPodsClient(self)

    @cached_property
    def memory(self) -> "AsyncMemoryClient":
        """Searchable entries."""
        from agentbox.client.async_client.slots import AsyncMemoryClient

        return AsyncMemoryClient(self)

    @cached_property
    def agents(self) -> "AsyncAgentsClient":
        """Agents."""
        from agentbox.client.async_client.agents import AsyncAgentsClient

        return AsyncAgentsClient(self)

    @cached_property
    def beads(self) -> "AsyncBeadsClient":
        """Work items."""
        from agentbox.client.async_client.beads import AsyncBeadsClient

        return AsyncBeadsClient(self)

    @cached_property
    def events(self) -> "AsyncEventsClient":
        """The event journal."""
        from agentbox.client.async_client.beads import AsyncEventsClient

        return AsyncEventsClient(self)

    @cached_property
    def tokens(self) -> "AsyncTokensClient":
        """Named tokens."""
        from agentbox.client.async_client.admin import AsyncTokensClient

        return AsyncTokensClient(self)

    @cached_property
    def mesh(self) -> "AsyncMeshClient":
        """Joined boxes, and this box's own membership."""
        from agentbox.client.async_client.admin import AsyncMeshClient

        return AsyncMeshClient(self)

    @cached_property
    def reviews(self) -> "AsyncReviewsClient":
        """Reviews of agents' changes."""
        from agentbox.client.async_client.reviews import AsyncReviewsClient

        return AsyncReviewsClient(self)

    @cached_property
    def states(self) -> "AsyncStatesClient":
        """States: the memory and pods of runs."""
        from agentbox.client.async_client.states import AsyncStatesClient

        return AsyncStatesClient(self)

    @cached_property
    def approvals(self) -> "AsyncApprovalsClient":
        """Actions that require an approval."""
        from agentbox.client.async_client.reviews import AsyncApprovalsClient

        return AsyncApprovalsClient(self)
