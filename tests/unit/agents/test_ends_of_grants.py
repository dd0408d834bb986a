"""Cost of an agent's start: the search for grants that expire visits every grant of every agent."""

import asyncio
import time
from typing import Any, cast

from agentbox_testkit.wait import wait_until

from agentbox.agents.authorization.revoker import GrantRevoker
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.contracts.orchestrator import DEFAULT, AgentSpec
from agentbox.core.ids import uuid7
from agentbox.policy.rights.authorization import Right
from agentbox.policy.rights.grant_set import Grant, GrantSet


class Searched(dict[str, AgentRecord]):
    """Agents, and how often all of them were visited."""

    count = 0

    def values(self) -> Any:
        self.count += 1
        return super().values()


def entry_with(expires_at: float | None) -> AgentRecord:
    """An agent with one grant."""
    right = Right(
        grant_id=f"g_{expires_at}", scope="tool", mode="allow", operations=("call",), patterns=("memory/*",), expires_at=expires_at,
    )  # fmt: skip
    return AgentRecord(
        agent_id=uuid7(), spec=AgentSpec(name="x", argv=("true",)), limits=DEFAULT, principal="", request_id="",
        grant_set=GrantSet(grants=(Grant(right=right),)),
    )  # fmt: skip


async def test_only_an_agent_whose_grants_end_starts_a_search() -> None:
    """Else a thousand starts would cost a thousand searches among a thousand agents."""
    never, in_time = entry_with(None), entry_with(time.time() + 1000)
    entries = Searched({one.agent_id: one for one in (never, in_time)})
    revoking = GrantRevoker(cast(HostState, None), entries, {})
    searching = asyncio.create_task(revoking.run())
    try:
        await wait_until(
            lambda: entries.count == 2, "it searched for what has ended, and for the next end"
        )
        revoking.watch(never)
        for _ in range(5):
            await asyncio.sleep(0)
        assert entries.count == 2
        revoking.watch(in_time)
        await wait_until(lambda: entries.count == 4, "it searched again")
    finally:
        searching.cancel()
