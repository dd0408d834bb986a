"""Tools that read records of the box: agents, reviews, memory, pods, events."""

from typing import Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from agentbox.client import AsyncBoxClient
from agentbox.host.mcp.pages import Cursor, Limit, page_query
from agentbox.host.mcp.results import document
from agentbox.host.mcp.toolset import Toolset

AgentId = Annotated[str, Field(description="The id of an agent.")]


def add_record_tools(tools: Toolset, box: AsyncBoxClient) -> None:
    """agent_list, agent_show, review_list, review_show, memory_search, pod_read, pod_list,
    events_read, usage.
    """

    async def agent_list(limit: Limit = 50, cursor: Cursor = "") -> CallToolResult:
        """Agents of the box, those that ended too."""
        return document(await box.call("list_agents", query=page_query(limit, cursor)))

    async def agent_show(agent_id: AgentId) -> CallToolResult:
        """One agent: state, limits, rights, what was refused to it, its model budget."""
        return document(await box.call("get_agent", {"id": agent_id}))

    async def review_list() -> CallToolResult:
        """Changes of ended agents that wait for a decision of a person."""
        return document(await box.call("list_reviews"))

    async def review_show(
        agent_id: AgentId,
        at: Annotated[int, Field(description="Index of the first change.", ge=0)] = 0,
        limit: Limit = 50,
    ) -> CallToolResult:
        """What an agent changed, as a diff. Files that run by themselves come first."""
        page = await box.call(
            "show_review", {"agent_id": agent_id}, query={"at": at, "limit": limit}
        )
        return document(page)

    async def memory_search(
        query: str,
        namespaces: Annotated[list[str], Field(min_length=1)] = ["default"],  # noqa: B006
        limit: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> CallToolResult:
        """Search the notes of the box by words and meaning."""
        hits = await box.memory.search(query, namespaces=namespaces, limit=limit)
        return document([hit.to_wire() for hit in hits])

    async def pod_read(path: str) -> CallToolResult:
        """The text of a stored object."""
        return document((await box.pods.read(path)).decode("utf-8", "replace"))

    async def pod_list(
        container: Annotated[str, Field(description='Ends with a slash; "" is the root.')] = "",
        limit: Limit = 100,
    ) -> CallToolResult:
        """The members of a container of stored objects."""
        page = await box.pods.list(container, limit=limit)
        return document([item.to_wire() for item in page.items])

    async def events_read(
        since: Annotated[int, Field(description="Events after this number.", ge=-1)] = -1,
        limit: Limit = 50,
        agent_id: Annotated[str, Field(description="Only those of this agent.")] = "",
    ) -> CallToolResult:
        """Events of the journal."""
        batch = await box.events.read(since=since, limit=limit, agent_id=agent_id or None)
        return document(batch.to_wire())

    async def usage(
        by: Literal["agent", "task", "model", "day"] = "agent",
        since: Annotated[str, Field(description="A time of RFC 3339.")] = "",
    ) -> CallToolResult:
        """Tokens and cost of model calls."""
        return document(await box.call("usage_report", query={"by": by, "since": since or None}))

    for reading in (
        *(agent_list, agent_show, review_list, review_show),
        *(memory_search, pod_read, pod_list, events_read, usage),
    ):
        tools.reading(reading)
