# Written by tools/client_operations.py from agentbox/contracts.

"""The client of a box. A resource is imported on first use: a command uses only one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbox.client.async_client.api_caller import AsyncApiCaller
from agentbox.client.transport import decode, decode_event, idempotency_header, without_none

if TYPE_CHECKING:
    from datetime import datetime

    from agentbox.client.async_client.agents import AsyncAgentsClient
    from agentbox.client.async_client.approvals import AsyncApprovalsClient
    from agentbox.client.async_client.backups import AsyncBackupsClient
    from agentbox.client.async_client.beads import AsyncBeadsClient
    from agentbox.client.async_client.events import AsyncEventsClient
    from agentbox.client.async_client.generation import AsyncGenerationClient
    from agentbox.client.async_client.logins import AsyncLoginsClient
    from agentbox.client.async_client.mcp import AsyncMcpClient
    from agentbox.client.async_client.memory import AsyncMemoryClient
    from agentbox.client.async_client.mesh import AsyncMeshClient
    from agentbox.client.async_client.pods import AsyncPodsClient
    from agentbox.client.async_client.reviews import AsyncReviewsClient
    from agentbox.client.async_client.sandbox_files import AsyncSandboxFilesClient
    from agentbox.client.async_client.sandboxes import AsyncSandboxesClient
    from agentbox.client.async_client.sessions import AsyncSessionsClient
    from agentbox.client.async_client.skills import AsyncSkillsClient
    from agentbox.client.async_client.states import AsyncStatesClient
    from agentbox.client.async_client.tokens import AsyncTokensClient
    from agentbox.client.async_client.usage import AsyncUsageClient
    from agentbox.client.async_client.users import AsyncUsersClient
    from agentbox.contracts.box import (
        Applied,
        BootReport,
        Draining,
        HealthReport,
        Live,
        Meta,
        Ready,
    )
    from agentbox.contracts.orchestrator import AgentSpec, StreamItem
    from agentbox.contracts.task_records import Submitted, Task
    from agentbox.core.records.page import Page


class AsyncBoxClient(AsyncApiCaller):
    """The API of a box. Raises ApiError for an error response, BoxUnreachable without
    one."""

    async def livez(self) -> Live:
        """The process answers. No check, no lock, no I/O."""
        from agentbox.contracts.box import Live

        response = await self.request("livez")
        return decode(Live, response)

    async def ready(self) -> Ready:
        """Readiness, with the missing requirements."""
        from agentbox.contracts.box import Ready

        response = await self.request("ready", accepted=(503,))
        return decode(Ready, response)

    async def health(self) -> HealthReport:
        """The state of each part, for people."""
        from agentbox.contracts.box import HealthReport

        response = await self.request("health")
        return decode(HealthReport, response)

    async def meta(self) -> Meta:
        """Identity of this box: digests, slots, boot."""
        from agentbox.contracts.box import Meta

        response = await self.request("meta")
        return decode(Meta, response)

    async def openapi(self) -> Mapping[str, Any]:
        """This table as OpenAPI 3.1."""
        response = await self.request("openapi")
        document: Mapping[str, Any] = response.json()
        return document

    async def boot(self, *, boot_id: str | None = None) -> BootReport:
        """Record, phases, events and sentinel of this boot; the timeline of it or of `boot_id`; all
        stored boots."""
        from agentbox.contracts.box import BootReport

        response = await self.request("boot", query={"boot_id": boot_id})
        return decode(BootReport, response)

    async def drain(self) -> Draining:
        """Marks the box unready, ends its agents, closes its slots, marks the shutdown clean."""
        from agentbox.contracts.box import Draining

        response = await self.request("drain")
        return decode(Draining, response)

    async def config_apply(self) -> Applied:
        """Reads the mounted manifest again and applies its live keys; changes nothing if a key of
        another class has changed."""
        from agentbox.contracts.box import Applied

        response = await self.request("config_apply", wait_s=60)
        return decode(Applied, response)

    async def submit_task(
        self,
        spec: AgentSpec | Mapping[str, Any],
        *,
        input: bytes | None = None,
        timeout_s: float = 600.0,
        priority: int = 5,
        not_before: datetime | None = None,
        dedup_key: str | None = None,
        attached: bool = False,
        request_id: str = "",
    ) -> Submitted:
        """Queues one run of a program. A bead is its receipt. The same `request_id` has one
        effect."""
        from agentbox.contracts.task_records import Submitted

        response = await self.request(
            "submit_task",
            body={
                "spec": spec,
                "timeout_s": timeout_s,
                "priority": priority,
                "attached": attached,
                **without_none({"input": input, "not_before": not_before, "dedup_key": dedup_key}),
            },
            headers=idempotency_header(request_id),
        )
        return decode(Submitted, response)

    async def list_tasks(self, *, limit: int = 100, cursor: str | None = None) -> Page[Task]:
        """Tasks, in order of id."""
        from agentbox.contracts.task_records import Task
        from agentbox.core.records.page import Page

        response = await self.request("list_tasks", query={"limit": limit, "cursor": cursor})
        return decode(Page[Task], response)

    async def get_task(self, id: str) -> Task:
        """One task."""
        from agentbox.contracts.task_records import Task

        response = await self.request("get_task", {"id": id})
        return decode(Task, response)

    async def task_logs(
        self, id: str, *, since: int = 0, follow: bool = True, reconnect_timeout: float = 60.0
    ) -> AsyncIterator[StreamItem | Task]:
        """Output of the task's agent; ends with an event `task` that carries the finished Task."""
        from agentbox.contracts.orchestrator import StreamItem
        from agentbox.contracts.task_records import Task

        events = self.stream(
            "task_logs",
            {"id": id},
            query={"since": since, "follow": follow},
            last="task",
            reconnect_timeout=reconnect_timeout,
        )
        async for event in events:
            yield (
                decode_event(Task, event)
                if event.event == "task"
                else decode_event(StreamItem, event)
            )

    async def cancel_task(self, id: str) -> Task:
        """Cancels a queued task, or ends a running one."""
        from agentbox.contracts.task_records import Task

        response = await self.request("cancel_task", {"id": id}, wait_s=90)
        return decode(Task, response)

    @cached_property
    def pods(self) -> AsyncPodsClient:
        """Named objects."""
        from agentbox.client.async_client.pods import AsyncPodsClient

        return AsyncPodsClient(self)

    @cached_property
    def sandbox_files(self) -> AsyncSandboxFilesClient:
        """Files of running sandboxes."""
        from agentbox.client.async_client.sandbox_files import AsyncSandboxFilesClient

        return AsyncSandboxFilesClient(self)

    @cached_property
    def beads(self) -> AsyncBeadsClient:
        """Work items with leases."""
        from agentbox.client.async_client.beads import AsyncBeadsClient

        return AsyncBeadsClient(self)

    @cached_property
    def memory(self) -> AsyncMemoryClient:
        """Searchable entries in namespaces."""
        from agentbox.client.async_client.memory import AsyncMemoryClient

        return AsyncMemoryClient(self)

    @cached_property
    def events(self) -> AsyncEventsClient:
        """The event journal."""
        from agentbox.client.async_client.events import AsyncEventsClient

        return AsyncEventsClient(self)

    @cached_property
    def agents(self) -> AsyncAgentsClient:
        """Agents of a box. A spec is an AgentSpec, or its JSON."""
        from agentbox.client.async_client.agents import AsyncAgentsClient

        return AsyncAgentsClient(self)

    @cached_property
    def tokens(self) -> AsyncTokensClient:
        """Named tokens."""
        from agentbox.client.async_client.tokens import AsyncTokensClient

        return AsyncTokensClient(self)

    @cached_property
    def users(self) -> AsyncUsersClient:
        """People who operate the box."""
        from agentbox.client.async_client.users import AsyncUsersClient

        return AsyncUsersClient(self)

    @cached_property
    def logins(self) -> AsyncLoginsClient:
        """Sessions of people."""
        from agentbox.client.async_client.logins import AsyncLoginsClient

        return AsyncLoginsClient(self)

    @cached_property
    def mesh(self) -> AsyncMeshClient:
        """Boxes joined to this one, and this box's own membership."""
        from agentbox.client.async_client.mesh import AsyncMeshClient

        return AsyncMeshClient(self)

    @cached_property
    def reviews(self) -> AsyncReviewsClient:
        """Reviews of agents' changes."""
        from agentbox.client.async_client.reviews import AsyncReviewsClient

        return AsyncReviewsClient(self)

    @cached_property
    def approvals(self) -> AsyncApprovalsClient:
        """Actions of agents that require an approval."""
        from agentbox.client.async_client.approvals import AsyncApprovalsClient

        return AsyncApprovalsClient(self)

    @cached_property
    def skills(self) -> AsyncSkillsClient:
        """The skills of the image."""
        from agentbox.client.async_client.skills import AsyncSkillsClient

        return AsyncSkillsClient(self)

    @cached_property
    def states(self) -> AsyncStatesClient:
        """The memory and pods of runs."""
        from agentbox.client.async_client.states import AsyncStatesClient

        return AsyncStatesClient(self)

    @cached_property
    def usage(self) -> AsyncUsageClient:
        """Tokens and cost of model calls."""
        from agentbox.client.async_client.usage import AsyncUsageClient

        return AsyncUsageClient(self)

    @cached_property
    def sandboxes(self) -> AsyncSandboxesClient:
        """Programs run under one agent's confinement."""
        from agentbox.client.async_client.sandboxes import AsyncSandboxesClient

        return AsyncSandboxesClient(self)

    @cached_property
    def sessions(self) -> AsyncSessionsClient:
        """Agents that speak the Agent Client Protocol."""
        from agentbox.client.async_client.sessions import AsyncSessionsClient

        return AsyncSessionsClient(self)

    @cached_property
    def mcp(self) -> AsyncMcpClient:
        """MCP servers of the box."""
        from agentbox.client.async_client.mcp import AsyncMcpClient

        return AsyncMcpClient(self)

    @cached_property
    def backups(self) -> AsyncBackupsClient:
        """Snapshots of the box."""
        from agentbox.client.async_client.backups import AsyncBackupsClient

        return AsyncBackupsClient(self)

    @cached_property
    def generation(self) -> AsyncGenerationClient:
        """The generation that runs."""
        from agentbox.client.async_client.generation import AsyncGenerationClient

        return AsyncGenerationClient(self)
