# Written by tools/sync_client.py from async_client/client.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""The client of a box. A resource is imported on first use: a command uses only one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbox.client.sync.api_caller import ApiCaller
from agentbox.client.transport import decode, decode_event, idempotency_header, without_none

if TYPE_CHECKING:
    from datetime import datetime

    from agentbox.client.sync.agents import AgentsClient
    from agentbox.client.sync.approvals import ApprovalsClient
    from agentbox.client.sync.backups import BackupsClient
    from agentbox.client.sync.beads import BeadsClient
    from agentbox.client.sync.events import EventsClient
    from agentbox.client.sync.generation import GenerationClient
    from agentbox.client.sync.logins import LoginsClient
    from agentbox.client.sync.mcp import McpClient
    from agentbox.client.sync.memory import MemoryClient
    from agentbox.client.sync.mesh import MeshClient
    from agentbox.client.sync.pods import PodsClient
    from agentbox.client.sync.reviews import ReviewsClient
    from agentbox.client.sync.sandbox_files import SandboxFilesClient
    from agentbox.client.sync.sandboxes import SandboxesClient
    from agentbox.client.sync.sessions import SessionsClient
    from agentbox.client.sync.skills import SkillsClient
    from agentbox.client.sync.states import StatesClient
    from agentbox.client.sync.tokens import TokensClient
    from agentbox.client.sync.usage import UsageClient
    from agentbox.client.sync.users import UsersClient
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


class BoxClient(ApiCaller):
    """The API of a box. Raises ApiError for an error response, BoxUnreachable without
    one."""

    def livez(self) -> Live:
        """The process answers. No check, no lock, no I/O."""
        from agentbox.contracts.box import Live

        response = self.request("livez")
        return decode(Live, response)

    def ready(self) -> Ready:
        """Readiness, with the missing requirements."""
        from agentbox.contracts.box import Ready

        response = self.request("ready", accepted=(503,))
        return decode(Ready, response)

    def health(self) -> HealthReport:
        """The state of each part, for people."""
        from agentbox.contracts.box import HealthReport

        response = self.request("health")
        return decode(HealthReport, response)

    def meta(self) -> Meta:
        """Identity of this box: digests, slots, boot."""
        from agentbox.contracts.box import Meta

        response = self.request("meta")
        return decode(Meta, response)

    def openapi(self) -> Mapping[str, Any]:
        """This table as OpenAPI 3.1."""
        response = self.request("openapi")
        document: Mapping[str, Any] = response.json()
        return document

    def boot(self, *, boot_id: str | None = None) -> BootReport:
        """Record, phases, events and sentinel of this boot; the timeline of it or of `boot_id`; all
        stored boots."""
        from agentbox.contracts.box import BootReport

        response = self.request("boot", query={"boot_id": boot_id})
        return decode(BootReport, response)

    def drain(self) -> Draining:
        """Marks the box unready, ends its agents, closes its slots, marks the shutdown clean."""
        from agentbox.contracts.box import Draining

        response = self.request("drain")
        return decode(Draining, response)

    def config_apply(self) -> Applied:
        """Reads the mounted manifest again and applies its live keys; changes nothing if a key of
        another class has changed."""
        from agentbox.contracts.box import Applied

        response = self.request("config_apply", wait_s=60)
        return decode(Applied, response)

    def submit_task(
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

        response = self.request(
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

    def list_tasks(self, *, limit: int = 100, cursor: str | None = None) -> Page[Task]:
        """Tasks, in order of id."""
        from agentbox.contracts.task_records import Task
        from agentbox.core.records.page import Page

        response = self.request("list_tasks", query={"limit": limit, "cursor": cursor})
        return decode(Page[Task], response)

    def get_task(self, id: str) -> Task:
        """One task."""
        from agentbox.contracts.task_records import Task

        response = self.request("get_task", {"id": id})
        return decode(Task, response)

    def task_logs(
        self, id: str, *, since: int = 0, follow: bool = True, reconnect_timeout: float = 60.0
    ) -> Iterator[StreamItem | Task]:
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
        for event in events:
            yield (
                decode_event(Task, event)
                if event.event == "task"
                else decode_event(StreamItem, event)
            )

    def cancel_task(self, id: str) -> Task:
        """Cancels a queued task, or ends a running one."""
        from agentbox.contracts.task_records import Task

        response = self.request("cancel_task", {"id": id}, wait_s=90)
        return decode(Task, response)

    @cached_property
    def pods(self) -> PodsClient:
        """Named objects."""
        from agentbox.client.sync.pods import PodsClient

        return PodsClient(self)

    @cached_property
    def sandbox_files(self) -> SandboxFilesClient:
        """Files of running sandboxes."""
        from agentbox.client.sync.sandbox_files import SandboxFilesClient

        return SandboxFilesClient(self)

    @cached_property
    def beads(self) -> BeadsClient:
        """Work items with leases."""
        from agentbox.client.sync.beads import BeadsClient

        return BeadsClient(self)

    @cached_property
    def memory(self) -> MemoryClient:
        """Searchable entries in namespaces."""
        from agentbox.client.sync.memory import MemoryClient

        return MemoryClient(self)

    @cached_property
    def events(self) -> EventsClient:
        """The event journal."""
        from agentbox.client.sync.events import EventsClient

        return EventsClient(self)

    @cached_property
    def agents(self) -> AgentsClient:
        """Agents of a box. A spec is an AgentSpec, or its JSON."""
        from agentbox.client.sync.agents import AgentsClient

        return AgentsClient(self)

    @cached_property
    def tokens(self) -> TokensClient:
        """Named tokens."""
        from agentbox.client.sync.tokens import TokensClient

        return TokensClient(self)

    @cached_property
    def users(self) -> UsersClient:
        """People who operate the box."""
        from agentbox.client.sync.users import UsersClient

        return UsersClient(self)

    @cached_property
    def logins(self) -> LoginsClient:
        """Sessions of people."""
        from agentbox.client.sync.logins import LoginsClient

        return LoginsClient(self)

    @cached_property
    def mesh(self) -> MeshClient:
        """Boxes joined to this one, and this box's own membership."""
        from agentbox.client.sync.mesh import MeshClient

        return MeshClient(self)

    @cached_property
    def reviews(self) -> ReviewsClient:
        """Reviews of agents' changes."""
        from agentbox.client.sync.reviews import ReviewsClient

        return ReviewsClient(self)

    @cached_property
    def approvals(self) -> ApprovalsClient:
        """Actions of agents that require an approval."""
        from agentbox.client.sync.approvals import ApprovalsClient

        return ApprovalsClient(self)

    @cached_property
    def skills(self) -> SkillsClient:
        """The skills of the image."""
        from agentbox.client.sync.skills import SkillsClient

        return SkillsClient(self)

    @cached_property
    def states(self) -> StatesClient:
        """The memory and pods of runs."""
        from agentbox.client.sync.states import StatesClient

        return StatesClient(self)

    @cached_property
    def usage(self) -> UsageClient:
        """Tokens and cost of model calls."""
        from agentbox.client.sync.usage import UsageClient

        return UsageClient(self)

    @cached_property
    def sandboxes(self) -> SandboxesClient:
        """Programs run under one agent's confinement."""
        from agentbox.client.sync.sandboxes import SandboxesClient

        return SandboxesClient(self)

    @cached_property
    def sessions(self) -> SessionsClient:
        """Agents that speak the Agent Client Protocol."""
        from agentbox.client.sync.sessions import SessionsClient

        return SessionsClient(self)

    @cached_property
    def mcp(self) -> McpClient:
        """MCP servers of the box."""
        from agentbox.client.sync.mcp import McpClient

        return McpClient(self)

    @cached_property
    def backups(self) -> BackupsClient:
        """Snapshots of the box."""
        from agentbox.client.sync.backups import BackupsClient

        return BackupsClient(self)

    @cached_property
    def generation(self) -> GenerationClient:
        """The generation that runs."""
        from agentbox.client.sync.generation import GenerationClient

        return GenerationClient(self)
