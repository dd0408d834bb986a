"""Usage over HTTP, from the gateway's record of model calls."""

import asyncio

from agentbox.contracts.session_host import SessionHost
from agentbox.contracts.usage import UsageGroup, UsageReport
from agentbox.core import clock
from agentbox.core.http.problems import invalid
from agentbox.gateway.llm.call_sums import CallSums

_PAGE = 500


class UsageHandlers:
    """`calls` may have no record yet: then nothing was used. `sessions` says which agent worked for
    which session.
    """

    def __init__(self, calls: CallSums, sessions: SessionHost) -> None:
        self._calls, self._sessions = calls, sessions

    async def report(self, by: UsageGroup, since: str | None, limit: int) -> UsageReport:
        """400 for a `since` that is no time with an offset. By session it raises SlotUnavailable
        without session-host.
        """
        try:
            start = None if since is None else clock.from_wire(since)
        except (ValueError, OverflowError):
            raise invalid("?since", "must be an RFC 3339 time with an offset") from None
        sessions = await self._by_agent() if by == "session" else {}
        return await asyncio.to_thread(self._calls.report, by, start, limit, sessions)

    async def _by_agent(self) -> dict[str, str]:
        """The session of each agent."""
        found: dict[str, str] = {}
        cursor: str | None = None
        while True:
            page = await self._sessions.list_sessions(limit=_PAGE, cursor=cursor)
            found |= {one.sandbox_id: one.session_id for one in page.items if one.sandbox_id}
            if (cursor := page.next_cursor) is None:
                return found
