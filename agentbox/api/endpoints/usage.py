"""Usage over HTTP, from the gateway's record of model calls."""

import asyncio

from agentbox.contracts.usage import UsageGroup, UsageReport
from agentbox.core import clock
from agentbox.core.http.problems import invalid
from agentbox.gateway.llm.call_sums import CallSums


class UsageHandlers:
    """`calls` may have no record yet: then nothing was used."""

    def __init__(self, calls: CallSums) -> None:
        self._calls = calls

    async def report(self, by: UsageGroup, since: str | None, limit: int) -> UsageReport:
        """400 for a `since` that is no time with an offset."""
        try:
            start = None if since is None else clock.from_wire(since)
        except (ValueError, OverflowError):
            raise invalid("?since", "must be an RFC 3339 time with an offset") from None
        return await asyncio.to_thread(self._calls.report, by, start, limit)
