# Written by tools/sync_client.py from async_client/client.py.
"""The client of a box. Clients of resources are imported on first use, since a command uses only
one."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbox.client.records import LogItem, Readiness, Submitted, Task
from agentbox.client.sync.api_caller import ApiCaller
from agentbox.client.task_call import parse_log_event, task_body

if TYPE_CHECKING:
    from agentbox.client.sync.admin import MeshClient, TokensClient
    from agentbox.client.sync.agents import AgentsClient
    from agentbox.client.sync.beads import BeadsClient, EventsClient
    from agentbox.client.sync.reviews import ApprovalsClient, ReviewsClient
    from agentbox.client.sync.slots import MemoryClient, PodsClient
    from agentbox.client.sync.states import StatesClient


class BoxClient(ApiCaller):
    """Calls the API of a box. Raises ApiError for an error response, BoxUnreachable without a
    response."""

    def ready(self) -> Readiness:
        """The cached readiness; not ready is not an error."""
        return Readiness.from_wire(self.call("ready", accepted=(503,)))

    def livez(self) -> Mapping[str, Any]:
        """{live, uptime}."""
        data: Mapping[str, Any] = self.call("livez")
        return data

    def health(self) -> Mapping[str, Any]:
        """The state of each component."""
        data: Mapping[str, Any] = self.call("health")
        return data

    def meta(self) -> Mapping[str, Any]:
        """Digests, slots, boot."""
        data: Mapping[str, Any] = self.call("meta")
        return data

    def boot(self) -> Mapping[str, Any]:
        """The record of this boot."""
        data: Mapping[str, Any] = self.call("boot")
        return data

    def drain(self) -> Mapping[str, Any]:
        """Starts the drain."""
        data: Mapping[str, Any] = self.call("drain")
        return data

    def tasks(
        self, *, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Task], str | None]:
        """A page of tasks and the next cursor."""
        page = self.call("list_tasks", query={"limit": limit, "cursor": cursor})
        return [Task.from_wire(item) for item in page["items"]], page["next_cursor"]

    def config_apply(self) -> Mapping[str, Any]:
        """Applies the live keys of the mounted manifest."""
        data: Mapping[str, Any] = self.call("config_apply", wait_s=60)
        return data

    def openapi(self) -> Mapping[str, Any]:
        """The API as OpenAPI 3.1."""
        data: Mapping[str, Any] = self.call("openapi")
        return data

    def submit_task(
        self, spec: Mapping[str, Any], *, timeout_s: float = 600, **options: Any
    ) -> Submitted:
        """Queues a run. `spec` is an AgentSpec in JSON; `options` are the other members of a
        TaskBody."""
        return Submitted.from_wire(
            self.call("submit_task", body=task_body(spec, timeout_s, options))
        )

    def task(self, task_id: str) -> Task:
        """One task."""
        return Task.from_wire(self.call("get_task", {"id": task_id}))

    def cancel_task(self, task_id: str) -> Task:
        """Cancels a task; returns when its agent has ended."""
        return Task.from_wire(self.call("cancel_task", {"id": task_id}, wait_s=90))

    def task_logs(
        self, task_id: str, *, since: int = 0, follow: bool = True, reconnect_timeout: float = 60.0
    ) -> Iterator[LogItem | Task]:
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
        for event in events:
            yield parse_log_event(event)

    @cached_property
    def pods(self) -> "PodsClient":
        """Named objects."""
        from agentbox.client.sync.slots import PodsClient

        return PodsClient(self)

    @cached_property
    def memory(self) -> "MemoryClient":
        """Searchable entries."""
        from agentbox.client.sync.slots import MemoryClient

        return MemoryClient(self)

    @cached_property
    def agents(self) -> "AgentsClient":
        """Agents."""
        from agentbox.client.sync.agents import AgentsClient

        return AgentsClient(self)

    @cached_property
    def beads(self) -> "BeadsClient":
        """Work items."""
        from agentbox.client.sync.beads import BeadsClient

        return BeadsClient(self)

    @cached_property
    def events(self) -> "EventsClient":
        """The event journal."""
        from agentbox.client.sync.beads import EventsClient

        return EventsClient(self)

    @cached_property
    def tokens(self) -> "TokensClient":
        """Named tokens."""
        from agentbox.client.sync.admin import TokensClient

        return TokensClient(self)

    @cached_property
    def mesh(self) -> "MeshClient":
        """Joined boxes, and this box's own membership."""
        from agentbox.client.sync.admin import MeshClient

        return MeshClient(self)

    @cached_property
    def reviews(self) -> "ReviewsClient":
        """Reviews of agents' changes."""
        from agentbox.client.sync.reviews import ReviewsClient

        return ReviewsClient(self)

    @cached_property
    def states(self) -> "StatesClient":
        """States: the memory and pods of runs."""
        from agentbox.client.sync.states import StatesClient

        return StatesClient(self)

    @cached_property
    def approvals(self) -> "ApprovalsClient":
        """Actions that require an approval."""
        from agentbox.client.sync.reviews import ApprovalsClient

        return ApprovalsClient(self)
