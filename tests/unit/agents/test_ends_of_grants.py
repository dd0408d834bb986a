"""Who is woken when an agent starts: the search for grants that end looks at every grant of every agent."""

import asyncio
import time
from typing import Any, cast

from agentbox.agents.authorization.revoking import Revoking
from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.contracts.orchestrator import DEFAULT, AgentSpec
from agentbox.core.ids import uuid7
from agentbox.policy.rights.holding import Grant, Holding
from agentbox.policy.rights.standing import Right
from agentbox.testing.until import until


class Searched(dict[str, Entry]):
    """Agents, and how often all of them were gone through."""

    count = 0

    def values(self) -> Any:
        self.count += 1
        return super().values()


def entry_with(expires_at: float | None) -> Entry:
    """An agent that holds one grant."""
    right = Right(
        grant_id=f"g_{expires_at}", scope="tool", mode="allow", operations=("call",), patterns=("memory/*",), expires_at=expires_at,
    )  # fmt: skip
    return Entry(
        agent_id=uuid7(), spec=AgentSpec(name="x", argv=("true",)), limits=DEFAULT, principal="", request_id="",
        holding=Holding(grants=(Grant(right=right),)),
    )  # fmt: skip


async def test_only_an_agent_whose_grants_end_starts_a_search() -> None:
    """Else a thousand starts would cost a thousand searches among a thousand agents."""
    never, in_time = entry_with(None), entry_with(time.time() + 1000)
    entries = Searched({one.agent_id: one for one in (never, in_time)})
    revoking = Revoking(cast(Host, None), entries, {})
    searching = asyncio.create_task(revoking.end_in_time())
    try:
        await until(lambda: entries.count == 2, "it searched for what has ended, and for the next end")
        revoking.watch(never)
        for _ in range(5):
            await asyncio.sleep(0)
        assert entries.count == 2
        revoking.watch(in_time)
        await until(lambda: entries.count == 4, "it searched again")
    finally:
        searching.cancel()
