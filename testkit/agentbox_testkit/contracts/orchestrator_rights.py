"""Clause O19: revoked grants."""

from typing import Any

from agentbox.contracts.orchestrator import AgentInfo, Orchestrator
from agentbox.core.slot_errors import NotFound
from agentbox_testkit.contracts.common import expect_error, transport
from agentbox_testkit.contracts.orchestrator_lab import FOREVER, new_id, spec, wait_ended


class RightsClauses:
    """Uses the fixture `adapter`, open."""

    @transport
    async def test_O19_a_grant_is_taken_back_for_good(self, adapter: Orchestrator) -> None:
        """The response and later reads show the grant revoked and all others unchanged; a second
        call is not an error and changes nothing. Equal grants of another agent are not affected.
        """
        handle = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        other = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        before = await adapter.get(handle.agent_id)
        grant = _grant(before, "tool")
        after = await adapter.revoke(handle.agent_id, grant)
        assert _states(after) == {**_states(before), grant: "revoked"}
        assert _states(await adapter.get(handle.agent_id)) == _states(after)
        assert _states(await adapter.revoke(handle.agent_id, grant)) == _states(after)
        assert (
            after.state == "running"
        )  # it is checked at each use, so no process has to end for it
        assert set(_states(await adapter.get(other.agent_id)).values()) == {"held"}
        for agent in (handle, other):
            await adapter.terminate(agent, grace_s=0)

    async def test_O19_what_the_kernel_holds_ends_the_process(self, adapter: Orchestrator) -> None:
        """The child, whose right was derived from it, ends too."""
        parent = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        child = await adapter.spawn(spec(*FOREVER, parent_id=parent.agent_id), request_id=new_id())
        await adapter.revoke(parent.agent_id, _grant(await adapter.get(parent.agent_id), "fs"))
        for agent in (parent, child):
            await wait_ended(adapter, agent.agent_id)
            info = await adapter.get(agent.agent_id)
            assert (info.pid, "revoked" in _states(info).values()) == (None, True)

    async def test_O19_only_what_is_there_is_taken_back(self, adapter: Orchestrator) -> None:
        """NotFound for an unknown agent, an unknown grant, and a grant of another agent."""
        agent, other = [await adapter.spawn(spec(*FOREVER), request_id=new_id()) for _ in range(2)]
        grant = _grant(await adapter.get(agent.agent_id), "tool")
        for agent_id, grant_id in (
            (new_id(), grant),
            (agent.agent_id, "g_none"),
            (other.agent_id, grant),
        ):
            await expect_error(NotFound, adapter.revoke(agent_id, grant_id))
        assert set(_states(await adapter.get(agent.agent_id)).values()) == {"held"}
        for handle in (agent, other):
            await adapter.terminate(handle, grace_s=0)


def _rows(info: AgentInfo) -> list[dict[str, Any]]:
    policy: Any = info.policy
    return [row for row in policy["grants"] if row["mode"] == "allow"]


def _states(info: AgentInfo) -> dict[str, str]:
    """Return the states by grant id."""
    return {row["grant_id"]: row["state"] for row in _rows(info)}


def _grant(info: AgentInfo, scope: str) -> str:
    """Return the first grant of a scope."""
    grant_id: str = next(row["grant_id"] for row in _rows(info) if row["scope"] == scope)
    return grant_id
