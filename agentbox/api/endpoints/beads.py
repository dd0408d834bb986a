"""Beads over HTTP."""

from dataclasses import replace

from agentbox.adapters.runtime.context import calling, current
from agentbox.api.auth.access import require
from agentbox.api.auth.naming import own_or_admin
from agentbox.api.auth.ownership import check_bead, given_tag, narrowed, owns
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.beads import LIMIT, BeadFilter, BeadSpec
from agentbox.contracts.bodies import ClaimBody, ClaimNextBody, CloseBody, HeartbeatBody, NewBead, ReleaseBody

FILTERS = ("status", "kind", "parent_id", "tag", "assignee", "creator")
DEFAULT_PAGE = 100


def _spec(call: Call) -> BeadSpec:
    given = call.record(NewBead)
    creator = own_or_admin(call, "/creator", given.creator or None)
    return replace(given, creator=creator, dedup_key=_own_key(call, call.dedup_key(given.dedup_key)))


def _own_key(call: Call, key: str | None) -> str | None:
    """An agent's keys are its own: by another's it would be shown another's bead, or stand in the way of one to come."""
    return f"{call.caller.principal}:{key}" if key is not None and call.caller.agent_id else key


async def create_epic(call: Call) -> Reply:
    """201 when it was created, 200 when its dedup_key was known."""
    bead, created = await call.services.container.beads.create_epic(_spec(call))
    return Reply(bead, status=201 if created else 200)


async def create_child(call: Call) -> Reply:
    """201 when it was created, 200 when its dedup_key was known."""
    await check_bead(call, call.parameters["id"])
    bead, created = await call.services.container.beads.create_child(call.parameters["id"], _spec(call))
    return Reply(bead, status=201 if created else 200)


async def add_dep(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    await check_bead(call, call.parameters["blocker"])
    await call.services.container.beads.add_dep(call.parameters["id"], call.parameters["blocker"])
    return Reply(status=204)


async def remove_dep(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    await call.services.container.beads.remove_dep(call.parameters["id"], call.parameters["blocker"])
    return Reply(status=204)


async def claim(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    body = call.record(ClaimBody)
    who = own_or_admin(call, "/assignee", body.assignee)
    beads = call.services.container.beads
    return Reply(await beads.claim(call.parameters["id"], who, lease_id=body.lease_id, lease_s=body.lease_s))


async def claim_next(call: Call) -> Reply:
    """204 when nothing is ready. An agent is given what is below a bead of its own, or what was given to it."""
    body = call.record(ClaimNextBody)
    tags = body.tags
    if call.caller.agent_id:
        if body.parent_id is None:
            if (given := given_tag(call.caller)) is None:
                return Reply(status=204)
            tags = (*tags, given)
        else:
            await check_bead(call, body.parent_id)
    found = await call.services.container.beads.claim_next(
        own_or_admin(call, "/assignee", body.assignee), lease_id=body.lease_id, lease_s=body.lease_s,
        parent_id=body.parent_id, tags=tags,
    )  # fmt: skip
    return Reply(status=204) if found is None else Reply(found)


async def heartbeat(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    body = call.record(HeartbeatBody)
    beads = call.services.container.beads
    return Reply(await beads.heartbeat(call.parameters["id"], body.lease_id, lease_s=body.lease_s))


async def release(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    body = call.record(ReleaseBody)
    beads = call.services.container.beads
    return Reply(await beads.release(call.parameters["id"], body.lease_id, delay_s=body.delay_s, note=body.note))


async def close_bead(call: Call) -> Reply:
    """`force` true demands the scope admin, false renounces what it would allow. A box may force what it holds itself."""
    await check_bead(call, call.parameters["id"])
    body = call.record(CloseBody)
    here = current()
    if body.force and call.caller.box:
        here = replace(here, scopes=here.scopes | await _held_by_box(call))
    elif body.force:
        require(call.caller, ("admin",))
    if body.force is False:
        here = replace(here, scopes=here.scopes - {"admin"})
    with calling(here):
        closed = await call.services.container.beads.close_bead(
            call.parameters["id"], outcome=body.outcome, note=body.note, result=body.result, lease_id=body.lease_id
        )
    return Reply(closed)


async def _held_by_box(call: Call) -> frozenset[str]:
    """What the operator of a box may do to a bead, as that box says: more only while the box, or a caller of it, holds it."""
    holder = (await call.services.container.beads.show(call.parameters["id"])).assignee or ""
    own = call.caller.principal
    return frozenset({"admin"}) if holder == own or holder.startswith(f"{own}:") else frozenset()


async def ready(call: Call) -> Reply:
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    beads, parent_id = call.services.container.beads, call.query.get("parent_id")
    page = await beads.ready(parent_id=parent_id, limit=limit, cursor=call.query.get("cursor"))
    if call.caller.agent_id:
        page = replace(page, items=tuple([bead for bead in page.items if await owns(call, bead)]))
    return Reply(page)


async def list_beads(call: Call) -> Reply:
    flt = await narrowed(call, BeadFilter.from_wire({name: call.query[name] for name in FILTERS if name in call.query}))
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    return Reply(await call.services.container.beads.list(flt, limit=limit, cursor=call.query.get("cursor")))


async def show(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    return Reply(await call.services.container.beads.show(call.parameters["id"]))
