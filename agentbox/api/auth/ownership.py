"""Which records an agent owns: beads that it created or got, and their children; agents that it
started. A caller that is not an agent owns all.
"""

from agentbox.api.auth.access import Caller
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.beads import Bead, BeadFilter
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.core.slot_errors import PermissionDenied

_MAX_DEPTH = 32  # parents that are checked; nesting ends earlier (B2)


def agent_tag(caller: Caller) -> str | None:
    """The tag that assigns a bead to the agents of that name; None for an ad-hoc program."""
    return f"for:{caller.agent_name}" if caller.agent_name else None


async def check_bead(request: ApiRequest, bead_id: str) -> None:
    """Raises PermissionDenied for a bead that the agent does not own, NotFound for an unknown
    one.
    """
    if request.caller.agent_id and not await is_owned(
        request, await request.services.slots.beads.show(bead_id)
    ):
        raise PermissionDenied(
            f"cannot use bead {bead_id}: it belongs to another caller", scope="beads:own"
        )


async def is_owned(request: ApiRequest, bead: Bead) -> bool:
    """Whether the agent created, holds or got the bead or one of its parents."""
    for _ in range(_MAX_DEPTH):
        if (
            request.caller.principal in (bead.creator, bead.assignee)
            or agent_tag(request.caller) in bead.tags
        ):
            return True
        if bead.parent_id is None:
            return False
        bead = await request.services.slots.beads.show(bead.parent_id)
    return False


async def restrict_filter(request: ApiRequest, filter: BeadFilter) -> BeadFilter:
    """A filter that hides other agents' beads: children of an own bead, assigned, held, else
    created by the agent. Raises PermissionDenied.
    """
    caller = request.caller
    if (
        not caller.agent_id
        or caller.principal in (filter.creator, filter.assignee)
        or (filter.tag is not None and filter.tag == agent_tag(caller))
    ):
        return filter
    if filter.parent_id is not None:
        await check_bead(request, filter.parent_id)
        return filter
    if filter.creator is not None:
        raise PermissionDenied("cannot list beads of another caller", scope="beads:own")
    return BeadFilter.from_wire({**filter.to_wire(), "creator": caller.principal})


def check_agent(request: ApiRequest, info: AgentInfo, *, allow_self: bool = False) -> None:
    """Raises PermissionDenied for an agent that this one did not start; `allow_self` also allows
    its own record.
    """
    agent_id = request.caller.agent_id
    if (
        not agent_id
        or info.spec.parent_id == agent_id
        or (allow_self and info.handle.agent_id == agent_id)
    ):
        return
    raise PermissionDenied(
        "cannot use this agent: it was started by another caller", scope="agents:own"
    )
