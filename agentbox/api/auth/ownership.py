"""What is an agent's own among records that others have too: beads that it made, was given, and their children; agents that
it started. A caller that is no agent owns everything here."""

from agentbox.api.auth.access import Caller
from agentbox.api.http.call import Call
from agentbox.contracts.beads import Bead, BeadFilter
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.core.slot_errors import PermissionDenied

_DEEPEST = 32  # parents above one bead that are looked at; nesting ends before (B2)


def given_tag(caller: Caller) -> str | None:
    """The tag by which whoever makes a bead gives it to the agents of a table; None for a program given ad hoc."""
    return f"for:{caller.agent_name}" if caller.agent_name else None


async def check_bead(call: Call, bead_id: str) -> None:
    """Raises PermissionDenied for a bead that is not the agent's, NotFound for an unknown one."""
    if call.caller.agent_id and not await owns(call, await call.services.container.beads.show(bead_id)):
        raise PermissionDenied(f"cannot use bead {bead_id}: it is not this agent's", scope="beads:own")


async def owns(call: Call, bead: Bead) -> bool:
    """Whether it, or a bead above it, was made by the agent, is held by it, or was given to it."""
    for _ in range(_DEEPEST):
        if call.caller.principal in (bead.creator, bead.assignee) or given_tag(call.caller) in bead.tags:
            return True
        if bead.parent_id is None:
            return False
        bead = await call.services.container.beads.show(bead.parent_id)
    return False


async def narrowed(call: Call, flt: BeadFilter) -> BeadFilter:
    """A filter that shows an agent nothing of others: below a bead of its own, given to it, held by it, or else made by it.
    Raises PermissionDenied."""
    me = call.caller
    if (
        not me.agent_id
        or me.principal in (flt.creator, flt.assignee)
        or (flt.tag is not None and flt.tag == given_tag(me))
    ):
        return flt
    if flt.parent_id is not None:
        await check_bead(call, flt.parent_id)
        return flt
    if flt.creator is not None:
        raise PermissionDenied("cannot list beads of another", scope="beads:own")
    return BeadFilter.from_wire({**flt.to_wire(), "creator": me.principal})


def check_agent(call: Call, info: AgentInfo, *, itself: bool = False) -> None:
    """Raises PermissionDenied for an agent that this one did not start; `itself` lets it look at its own record too."""
    me = call.caller.agent_id
    if not me or info.spec.parent_id == me or (itself and info.handle.agent_id == me):
        return
    raise PermissionDenied("cannot use this agent: another started it", scope="agents:own")
