"""Which records an agent owns: beads that it created or got, and their children; agents that it
started. A caller that is not an agent owns all.
"""

from collections.abc import Mapping
from dataclasses import replace

from agentbox.api.auth.authentication import Caller, Check
from agentbox.contracts.beads import Bead, BeadFilter, Beads
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.core.slot_errors import PermissionDenied

_MAX_DEPTH = 32  # parents that are checked; nesting ends earlier (B2)


def agent_tag(caller: Caller) -> str | None:
    """The tag that assigns a bead to the agents of that name; None for an ad-hoc program."""
    return f"for:{caller.agent_name}" if caller.agent_name else None


class BeadOwnership:
    """The beads that an agent may use."""

    def __init__(self, beads: Beads) -> None:
        self._beads = beads

    @property
    def checks(self) -> Mapping[str, Check]:
        """By argument of the slot beads: each of them names a bead."""
        return {"bead_id": self.check, "blocker_id": self.check}

    async def check(self, caller: Caller, bead_id: str) -> None:
        """Raises PermissionDenied for a bead that the agent does not own, NotFound for an unknown
        one.
        """
        if caller.agent_id and not await self.owns(caller, await self._beads.show(bead_id)):
            raise PermissionDenied(
                f"cannot use bead {bead_id}: it belongs to another caller", scope="beads:own"
            )

    async def owns(self, caller: Caller, bead: Bead) -> bool:
        """Whether the agent created, holds or got the bead or one of its parents."""
        for _ in range(_MAX_DEPTH):
            if caller.principal in (bead.creator, bead.assignee) or agent_tag(caller) in bead.tags:
                return True
            if bead.parent_id is None:
                return False
            bead = await self._beads.show(bead.parent_id)
        return False

    async def restrict(self, caller: Caller, filter: BeadFilter) -> BeadFilter:
        """A filter that hides other agents' beads: children of an own bead, assigned, held, else
        created by the agent. Raises PermissionDenied.
        """
        if (
            not caller.agent_id
            or caller.principal in (filter.creator, filter.assignee)
            or (filter.tag is not None and filter.tag == agent_tag(caller))
        ):
            return filter
        if filter.parent_id is not None:
            await self.check(caller, filter.parent_id)
            return filter
        if filter.creator is not None:
            raise PermissionDenied("cannot list beads of another caller", scope="beads:own")
        return replace(filter, creator=caller.principal)


def check_agent(caller: Caller, info: AgentInfo, *, allow_self: bool = False) -> None:
    """Raises PermissionDenied for an agent that this one did not start; `allow_self` also allows
    its own record.
    """
    agent_id = caller.agent_id
    if (
        not agent_id
        or info.spec.parent_id == agent_id
        or (allow_self and info.handle.agent_id == agent_id)
    ):
        return
    raise PermissionDenied(
        "cannot use this agent: it was started by another caller", scope="agents:own"
    )
