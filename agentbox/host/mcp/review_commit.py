"""The tool that commits a review, if the operator started the server with `--allow review-commit`:
a person confirms each use in a form of the client, which shows the digest.
"""

from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from agentbox.client import AsyncBoxClient
from agentbox.host.mcp.results import document
from agentbox.host.mcp.toolset import Toolset


class Confirmation(BaseModel):
    """The form."""

    commit: bool = Field(description="Write these changes into the project.")


def add_review_commit(tools: Toolset, box: AsyncBoxClient) -> None:
    """review_commit."""

    async def confirm(agent_id: str, digest: str) -> Elicit[Confirmation]:
        summary = (await box.reviews.show(agent_id, limit=1)).summary
        if summary.digest != digest:
            raise ToolError("the digest is not that of the review now: read review_show again")
        counts = (
            f"{summary.added} added, {summary.modified} modified, {summary.deleted} deleted; "
            f"{summary.runs_by_itself} of them run by themselves"
        )
        return Elicit(
            f"Write the changes of agent {summary.agent_id} into the project? {counts}. "
            f"Digest {summary.digest}. `agentbox review show {summary.agent_id}` shows them.",
            Confirmation,
        )

    async def review_commit(
        agent_id: str,
        digest: Annotated[str, Field(description="`digest` of review_show.")],
        confirmation: Annotated[Confirmation, Resolve(confirm)],
    ) -> CallToolResult:
        """Write the changes of an agent into the project. A person is asked first."""
        if not confirmation.commit:
            raise ToolError("the person did not confirm")
        return document((await box.reviews.commit(agent_id, digest)).to_wire())

    tools.writing(review_commit)
