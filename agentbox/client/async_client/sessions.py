# Written by tools/client_operations.py from agentbox/contracts.

"""Agents that speak the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, decode_event, idempotency_header, without_none

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.sessions import PromptResult, Session, SessionItem, Transcript
    from agentbox.core.records.page import Page


class AsyncSessionsClient:
    """Agents that speak the Agent Client Protocol. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def create(
        self,
        *,
        name: str = "",
        agent: str = "",
        cwd: str = "/workspace",
        labels: Mapping[str, Any] | None = None,
        request_id: str = "",
    ) -> Session:
        """Opens a session: starts an agent with `protocol = "acp"` in a sandbox of its own.
        Repeating it with the same `Idempotency-Key` returns the same session. The same `request_id`
        has one effect."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request(
            "open_session",
            body={"name": name, "agent": agent, "cwd": cwd, **without_none({"labels": labels})},
            headers=idempotency_header(request_id),
            wait_s=180,
        )
        return decode(Session, response)

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[Session]:
        """Sessions, oldest first; closed ones are kept for a while."""
        from agentbox.contracts.sessions import Session
        from agentbox.core.records.page import Page

        response = await self._box.request(
            "list_sessions", query={"limit": limit, "cursor": cursor}
        )
        return decode(Page[Session], response)

    async def show(self, session_id: str) -> Session:
        """One session, by its id or name, with the questions that wait."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request("show_session", {"id": session_id})
        return decode(Session, response)

    async def close(self, session_id: str) -> Session:
        """Closes a session: its agent ends, and its branch waits for a review."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request("close_session", {"id": session_id}, wait_s=60)
        return decode(Session, response)

    async def prompt(
        self, session_id: str, text: str, *, request_id: str = "", wait_s: float = 0
    ) -> PromptResult:
        """Starts a turn; a suspended session is resumed first. Repeating it with the same
        `Idempotency-Key` waits for the same turn. The same `request_id` has one effect."""
        from agentbox.contracts.sessions import PromptResult

        response = await self._box.request(
            "prompt_session",
            {"id": session_id},
            body={"text": text, "wait_s": wait_s},
            headers=idempotency_header(request_id),
            wait_s=wait_s + 10,
        )
        return decode(PromptResult, response)

    async def cancel(self, session_id: str) -> Session:
        """Cancels the turn, and the questions that wait; without a turn nothing happens."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request("cancel_session", {"id": session_id}, wait_s=60)
        return decode(Session, response)

    async def configure(
        self, session_id: str, *, mode: str = "", option: str = "", value: str = ""
    ) -> Session:
        """Sets the agent's mode, or one of its options."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request(
            "configure_session",
            {"id": session_id},
            body={"mode": mode, "option": option, "value": value},
            wait_s=30,
        )
        return decode(Session, response)

    async def suspend(self, session_id: str) -> Session:
        """Ends the agent's program; branch, HOME and grants stay."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request("suspend_session", {"id": session_id}, wait_s=60)
        return decode(Session, response)

    async def resume(self, session_id: str) -> Session:
        """Starts the program of a suspended session again."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request("resume_session", {"id": session_id}, wait_s=180)
        return decode(Session, response)

    async def decide(self, session_id: str, permission_id: str, *, option_id: str = "") -> Session:
        """Answers a question of the agent. Approvals of the box are answered at `/v1/approvals`."""
        from agentbox.contracts.sessions import Session

        response = await self._box.request(
            "decide_permission",
            {"id": session_id, "pid": permission_id},
            body={"option_id": option_id},
        )
        return decode(Session, response)

    async def stream(
        self,
        session_id: str,
        *,
        since: int = 0,
        follow: bool = True,
        reconnect_timeout: float = 60.0,
    ) -> AsyncIterator[SessionItem]:
        """Everything that happens in a session, from the start or after `since` or Last-Event-
        ID."""
        from agentbox.contracts.sessions import SessionItem

        events = self._box.stream(
            "stream_session",
            {"id": session_id},
            query={"since": since, "follow": follow},
            reconnect_timeout=reconnect_timeout,
        )
        async for event in events:
            yield decode_event(SessionItem, event)

    async def transcript(self, session_id: str, *, since: int = 0, limit: int = 100) -> Transcript:
        """A part of the transcript: the items after `since`."""
        from agentbox.contracts.sessions import Transcript

        response = await self._box.request(
            "read_transcript", {"id": session_id}, query={"since": since, "limit": limit}
        )
        return decode(Transcript, response)
