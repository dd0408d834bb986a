"""Tools for sessions: an agent that is asked again and again, and keeps its branch in between."""

from contextlib import suppress
from typing import Annotated, Final

import anyio
from mcp_types import CallToolResult
from pydantic import Field

from agentbox.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.contracts.sessions import MAX_PROMPT, PromptResult
from agentbox.core.ids import uuid7
from agentbox.host.mcp.results import answer, document
from agentbox.host.mcp.toolset import Toolset

_CANCEL_SECONDS: Final = 15.0

SessionId = Annotated[str, Field(description="`session_id` that session_new returned, or a name.")]


def add_session_tools(tools: Toolset, box: AsyncBoxClient) -> None:
    """session_new, session_prompt, session_cancel, session_transcript, session_close."""

    async def session_new(
        agent: Annotated[
            str,
            Field(description="An agent of the manifest that speaks ACP; empty: the only one."),
        ] = "",
        name: Annotated[str, Field(description="A name for people.")] = "",
    ) -> CallToolResult:
        """Open a session: start an agent on a copy of the project. It waits for prompts, and keeps
        its copy and what it knows until session_close."""
        return document((await box.sessions.create(agent=agent, name=name)).to_wire())

    async def session_prompt(
        session_id: SessionId,
        text: Annotated[str, Field(min_length=1, max_length=MAX_PROMPT)],
        wait_s: Annotated[
            float, Field(description="Seconds; then the agent works on.", ge=0, le=86400)
        ] = 600,
    ) -> CallToolResult:
        """Ask the agent of a session, and return what it said. Cancelling the call cancels its
        turn."""
        try:
            result = await box.sessions.prompt(session_id, text, request_id=uuid7(), wait_s=wait_s)
        except anyio.get_cancelled_exc_class():
            await _cancel(box, session_id)
            raise
        return answer(_summary(result), result.text)

    async def session_cancel(session_id: SessionId) -> CallToolResult:
        """Cancel what the agent of a session does now."""
        return document((await box.sessions.cancel(session_id)).to_wire())

    async def session_transcript(
        session_id: SessionId,
        since: Annotated[int, Field(description="Items after this cursor.", ge=0)] = 0,
        limit: Annotated[int, Field(description="At most so many.", ge=1, le=500)] = 100,
    ) -> CallToolResult:
        """What was said and done in a session, oldest first."""
        page = await box.sessions.transcript(session_id, since=since, limit=limit)
        return document(page.to_wire())

    async def session_close(session_id: SessionId) -> CallToolResult:
        """End a session. What its agent changed waits for a review (review_show with its
        `sandbox_id`)."""
        return document((await box.sessions.close(session_id)).to_wire())

    tools.reading(session_transcript)
    for writing in (session_new, session_prompt, session_cancel, session_close):
        tools.writing(writing)


async def _cancel(box: AsyncBoxClient, session_id: str) -> None:
    """The client cancelled the call, or has gone: nobody waits for the turn."""
    with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CANCEL_SECONDS):
        with suppress(ApiError, BoxUnreachable):  # it may have ended meanwhile
            await box.sessions.cancel(session_id)


def _summary(result: PromptResult) -> str:
    """One line on how it went, in our words."""
    if not result.stop_reason:
        return f"Turn {result.turn} goes on: session_transcript has what the agent does."
    return f"Turn {result.turn} has ended: {result.stop_reason}."
