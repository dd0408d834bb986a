"""What is an agent's own among records that others have too: beads that it made, was given, and their children; agents that
it started. A caller that is no agent owns everything here."""

from agentbox.api.auth.access import Caller
from agentbox.api.http.call import Call
from agentbox.contracts.beads import Bead, BeadFilter
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.core.slot_errors import PermissionDenied

_MAX_DEPTH = 32  # parents above one bead that are looked at; nesting ends before (B2)


def agent_tag(caller: Caller) -> str | None:
    """The tag by which whoever makes a bead gives it to the agents of a table; None for a program given ad hoc."""
    return f"for:{caller.agent_name}" if caller.agent_name else None


async def check_bead(call: Call, bead_id: str) -> None:
    """Raises PermissionDenied for a bead that is not the agent's, NotFound for an unknown one."""
    if call.caller.agent_id and not await is_owned(
        call, await call.services.slots.beads.show(bead_id)
    ):
        raise PermissionDenied(
            f"cannot use bead {bead_id}: it is not this agent's", scope="beads:own"
        )


async def is_owned(call: Call, bead: Bead) -> bool:
    """Whether it, or a bead above it, was made by the agent, is held by it, or was given to it."""
    for _ in range(_MAX_DEPTH):
        if (
            call.caller.principal in (bead.creator, bead.assignee)
            or agent_tag(call.caller) in bead.tags
        ):
            return True
        if bead.parent_id is None:
            return False
        bead = await call.services.slots.beads.show(bead.parent_id)
    return False


async def restrict_filter(call: Call, flt: BeadFilter) -> BeadFilter:
    """A filter that shows an agent nothing of others: below a bead of its own, given to it, held by it, or else made by it.
    Raises PermissionDenied."""
    caller = call.caller
    if (
        not caller.agent_id
        or caller.principal in (flt.creator, flt.assignee)
        or (flt.tag is not None and flt.tag == agent_tag(caller))
    ):
        return flt
    if flt.parent_id is not None:
        await check_bead(call, flt.parent_id)
        return flt
    if flt.creator is not None:
        raise PermissionDenied("cannot list beads of another", scope="beads:own")
    return BeadFilter.from_wire({**flt.to_wire(), "creator": caller.principal})


def check_agent(call: Call, info: AgentInfo, *, allow_self: bool = False) -> None:
    """Raises PermissionDenied for an agent that this one did not start; `itself` lets it look at its own record too."""
    me = call.caller.agent_id
    if not me or info.spec.parent_id == me or (allow_self and info.handle.agent_id == me):
        return
    raise PermissionDenied("cannot use this agent: another started it", scope="agents:own")
