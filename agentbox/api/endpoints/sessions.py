"""Sessions over HTTP, forwarded to session-host, which runs them."""

import asyncio
import re
from collections.abc import AsyncIterator

from starlette.responses import Response

from agentbox.api.auth.authentication import Caller
from agentbox.api.endpoints.editor_socket import EditorSocket
from agentbox.api.session_usage import SessionUsageReader
from agentbox.contracts.scopes import GRANTABLE
from agentbox.contracts.session_host import SessionHost
from agentbox.contracts.sessions import (
    MAX_NAME,
    MAX_OPTION,
    MAX_PROMPT,
    MAX_WAIT,
    PERMISSION_ID,
    NewSession,
    PromptResult,
    Session,
    SessionConfig,
    Transcript,
)
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import EventStreamResponse, RecordResponse, header_list
from agentbox.core.http.sse import ServerSentEvent
from agentbox.core.ids import uuid7
from agentbox.core.records.page import Page
from agentbox.core.records.wire import to_wire
from agentbox.core.slot_errors import NotFound, UnknownSession

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class SessionHandlers:
    """Raises SlotUnavailable without session-host. `closing` ends streams and connections."""

    def __init__(self, host: SessionHost, used: SessionUsageReader, closing: asyncio.Event) -> None:
        self._host, self._used, self._closing = host, used, closing

    async def create(self, session: NewSession, request_id: str, caller: Caller) -> Response:
        _check_length("/name", session.name, 0, MAX_NAME)
        created = await self._host.create_session(
            session, request_id=request_id, principal=caller.principal
        )
        location = header_list(("Location", f"/v1/sessions/{created.session_id}"))
        return RecordResponse(created, 201, location)

    async def list(self, limit: int, cursor: str | None) -> Page[Session]:
        page = await self._host.list_sessions(limit=limit, cursor=cursor)
        return Page(items=await self._used.fill(page.items), next_cursor=page.next_cursor)

    async def show(self, session_id: str) -> Session:
        (found,) = await self._used.fill([await self._host.get_session(_known(session_id))])
        return found

    async def close(self, session_id: str, caller: Caller) -> Session:
        closed = await self._host.close_session(_known(session_id), principal=caller.principal)
        (filled,) = await self._used.fill([closed])
        return filled

    async def prompt(
        self, session_id: str, text: str, request_id: str, wait_s: float, caller: Caller
    ) -> PromptResult:
        _check_length("/text", text, 1, MAX_PROMPT)
        if not 0 <= wait_s <= MAX_WAIT:
            raise invalid("/wait_s", f"must be from 0 to {MAX_WAIT:g}")
        return await self._host.prompt_session(
            _known(session_id),
            text,
            request_id=request_id,
            principal=caller.principal,
            wait_s=wait_s,
        )

    async def cancel(self, session_id: str, caller: Caller) -> Session:
        return await self._host.cancel_session(_known(session_id), principal=caller.principal)

    async def configure(self, session_id: str, config: SessionConfig, caller: Caller) -> Session:
        return await self._host.configure_session(
            _known(session_id), config, principal=caller.principal
        )

    async def suspend(self, session_id: str, caller: Caller) -> Session:
        return await self._host.suspend_session(_known(session_id), principal=caller.principal)

    async def resume(self, session_id: str, caller: Caller) -> Session:
        return await self._host.resume_session(_known(session_id), principal=caller.principal)

    async def decide(
        self, session_id: str, permission_id: str, option_id: str, caller: Caller
    ) -> Session:
        _check_length("/option_id", option_id, 0, MAX_OPTION)
        if not re.fullmatch(PERMISSION_ID, permission_id):
            raise NotFound("cannot find this question", resource="permission", id=permission_id)
        return await self._host.decide_permission(
            _known(session_id), permission_id, option_id=option_id, principal=caller.principal
        )

    async def stream(self, session_id: str, since: int, follow: bool) -> Response:
        """An unknown session is 404, before the first byte."""
        await self._host.get_session(_known(session_id))
        return EventStreamResponse(self._events(session_id, since, follow), self._closing)

    async def transcript(self, session_id: str, since: int, limit: int) -> Transcript:
        return await self._host.read_transcript(_known(session_id), since=since, limit=limit)

    async def connect(
        self, connection: str | None, since: int, agent: str, session: str, caller: Caller
    ) -> EditorSocket:
        """What cannot be opened is refused before the upgrade."""
        if connection is not None and not _ID.fullmatch(connection):
            raise invalid("?connection", "must be the Acp-Connection-Id of an earlier answer")
        connection_id = connection or uuid7()
        frames = self._host.open_editor(
            connection_id,
            principal=caller.principal,
            scopes=tuple(sorted(scope for scope in GRANTABLE if caller.has_scope(scope))),
            since=since,
            agent=agent,
            session=session,
        )
        first = await anext(frames)
        return EditorSocket(self._host, connection_id, frames, first.received, self._closing)

    async def _events(
        self, session_id: str, since: int, follow: bool
    ) -> AsyncIterator[ServerSentEvent]:
        async for item in self._host.stream_session(_known(session_id), since=since, follow=follow):
            yield ServerSentEvent(str(item.cursor), item.kind, to_wire(item))


def _known(session_id: str) -> str:
    """Raises UnknownSession for what is neither an id nor a name."""
    if len(session_id) > MAX_NAME:
        raise UnknownSession("cannot find this session", id=session_id[:MAX_NAME])
    return session_id


def _check_length(pointer: str, text: str, least: int, most: int) -> None:
    if not least <= len(text) <= most:
        raise invalid(pointer, f"must have {least} to {most} characters")
