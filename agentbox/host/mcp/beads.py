"""Tools for work items."""

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from agentbox.client import AsyncBoxClient
from agentbox.core.ids import uuid7
from agentbox.host.mcp.pages import Cursor, Limit, page_query
from agentbox.host.mcp.results import document
from agentbox.host.mcp.toolset import Toolset

BeadId = Annotated[str, Field(description="The id of a work item.")]
LeaseId = Annotated[str, Field(description="`lease_id` that bead_claim returned.")]


def add_bead_tools(tools: Toolset, box: AsyncBoxClient) -> None:
    """bead_create, bead_list, bead_ready, bead_show, bead_claim, bead_release, bead_close."""

    async def bead_create(
        title: str,
        body: str = "",
        tags: Annotated[
            list[str], Field(description="`for:<agent>` assigns it to agents of that name.")
        ] = [],  # noqa: B006 - a default in a schema
        priority: Annotated[int, Field(ge=0, le=9, description="0 is first.")] = 5,
        parent_id: Annotated[
            str, Field(description="Work item that it is a part of; empty: a new epic.")
        ] = "",
    ) -> CallToolResult:
        """Create a work item. Its parts can be claimed; an epic, which has no parent, cannot."""
        if parent_id:
            bead, _ = await box.beads.create_child(
                parent_id, title, body=body, tags=tags, priority=priority
            )
        else:
            bead, _ = await box.beads.create_epic(title, body=body, tags=tags, priority=priority)
        return document(bead.to_wire())

    async def bead_list(
        status: str = "", tag: str = "", limit: Limit = 50, cursor: Cursor = ""
    ) -> CallToolResult:
        """Work items by filter."""
        query = {"status": status or None, "tag": tag or None, **page_query(limit, cursor)}
        return document(await box.call("list_beads", query=query))

    async def bead_ready(limit: Limit = 50, cursor: Cursor = "") -> CallToolResult:
        """Work items that can be claimed now."""
        return document(await box.call("ready_beads", query=page_query(limit, cursor)))

    async def bead_show(bead_id: BeadId) -> CallToolResult:
        """One work item with its result."""
        return document(await box.call("show_bead", {"id": bead_id}))

    async def bead_claim(
        bead_id: BeadId,
        lease_s: Annotated[
            int, Field(ge=1, le=86400, description="Seconds; then it can be claimed again.")
        ] = 3600,
    ) -> CallToolResult:
        """Take a work item, so that nobody else works on it. Give it back with bead_release, or
        end it with bead_close."""
        claim = await box.beads.claim(bead_id, lease_id=uuid7(), lease_s=lease_s)
        return document(claim.to_wire())

    async def bead_release(bead_id: BeadId, lease_id: LeaseId, note: str = "") -> CallToolResult:
        """Give back a work item that was claimed; it can be claimed again."""
        return document((await box.beads.release(bead_id, lease_id, note=note)).to_wire())

    async def bead_close(
        bead_id: BeadId,
        outcome: Literal["done", "failed", "cancelled"] = "done",
        note: str = "",
        lease_id: Annotated[
            str, Field(description="As bead_claim returned it; empty if nobody claimed it.")
        ] = "",
        result: Annotated[Any, Field(description="Any JSON.")] = None,
    ) -> CallToolResult:
        """End a work item with its outcome."""
        bead = await box.beads.close_bead(
            bead_id, outcome=outcome, note=note, result=result, lease_id=lease_id or None
        )
        return document(bead.to_wire())

    for reading in (bead_list, bead_ready, bead_show):
        tools.reading(reading)
    for writing in (bead_create, bead_claim, bead_release, bead_close):
        tools.writing(writing)
