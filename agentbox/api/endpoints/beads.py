"""Beads over HTTP."""

from dataclasses import replace

from agentbox.adapters.runtime.context import as_caller, current
from agentbox.api.auth.access import require
from agentbox.api.auth.naming import resolve_principal
from agentbox.api.auth.ownership import agent_tag, check_bead, is_owned, restrict_filter
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.contracts.beads import LIMIT, BeadFilter, BeadSpec
from agentbox.contracts.bodies import (
    ClaimBody,
    ClaimNextBody,
    CloseBody,
    HeartbeatBody,
    NewBead,
    ReleaseBody,
)

FILTERS = ("status", "kind", "parent_id", "tag", "assignee", "creator")
DEFAULT_PAGE = 100


def _spec(call: Call) -> BeadSpec:
    body = call.record(NewBead)
    creator = resolve_principal(call, "/creator", body.creator or None)
    return replace(
        body, creator=creator, dedup_key=_scoped_key(call, call.dedup_key(body.dedup_key))
    )


def _scoped_key(call: Call, key: str | None) -> str | None:
    """Prefixes the keys of an agent: with another agent's key it would see that bead, or block a
    future one.
    """
    return f"{call.caller.principal}:{key}" if key is not None and call.caller.agent_id else key


async def create_epic(call: Call) -> Reply:
    """201 when it was created, 200 when its dedup_key exists."""
    bead, created = await call.services.slots.beads.create_epic(_spec(call))
    return Reply(bead, status=201 if created else 200)


async def create_child(call: Call) -> Reply:
    """201 when it was created, 200 when its dedup_key exists."""
    await check_bead(call, call.parameters["id"])
    bead, created = await call.services.slots.beads.create_child(call.parameters["id"], _spec(call))
    return Reply(bead, status=201 if created else 200)


async def add_dep(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    await check_bead(call, call.parameters["blocker"])
    await call.services.slots.beads.add_dep(call.parameters["id"], call.parameters["blocker"])
    return Reply(status=204)


async def remove_dep(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    await call.services.slots.beads.remove_dep(call.parameters["id"], call.parameters["blocker"])
    return Reply(status=204)


async def claim(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    body = call.record(ClaimBody)
    assignee = resolve_principal(call, "/assignee", body.assignee)
    beads = call.services.slots.beads
    return Reply(
        await beads.claim(
            call.parameters["id"], assignee, lease_id=body.lease_id, lease_s=body.lease_s
        )
    )


async def claim_next(call: Call) -> Reply:
    """204 when nothing is ready. An agent gets children of its own beads, or beads assigned to
    it.
    """
    body = call.record(ClaimNextBody)
    tags = body.tags
    if call.caller.agent_id:
        if body.parent_id is None:
            if (tag := agent_tag(call.caller)) is None:
                return Reply(status=204)
            tags = (*tags, tag)
        else:
            await check_bead(call, body.parent_id)
    bead = await call.services.slots.beads.claim_next(
        resolve_principal(call, "/assignee", body.assignee),
        lease_id=body.lease_id,
        lease_s=body.lease_s,
        parent_id=body.parent_id,
        tags=tags,
    )
    return Reply(status=204) if bead is None else Reply(bead)


async def heartbeat(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    body = call.record(HeartbeatBody)
    beads = call.services.slots.beads
    return Reply(await beads.heartbeat(call.parameters["id"], body.lease_id, lease_s=body.lease_s))


async def release(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    body = call.record(ReleaseBody)
    beads = call.services.slots.beads
    return Reply(
        await beads.release(
            call.parameters["id"], body.lease_id, delay_s=body.delay_s, note=body.note
        )
    )


async def close_bead(call: Call) -> Reply:
    """`force` true needs the scope admin, false gives up its effect. A box may force its own
    beads.
    """
    await check_bead(call, call.parameters["id"])
    body = call.record(CloseBody)
    context = current()
    if body.force and call.caller.box:
        context = replace(context, scopes=context.scopes | await _box_scopes(call))
    elif body.force:
        require(call.caller, ("admin",))
    if body.force is False:
        context = replace(context, scopes=context.scopes - {"admin"})
    with as_caller(context):
        closed = await call.services.slots.beads.close_bead(
            call.parameters["id"],
            outcome=body.outcome,
            note=body.note,
            result=body.result,
            lease_id=body.lease_id,
        )
    return Reply(closed)


async def _box_scopes(call: Call) -> frozenset[str]:
    """The scopes of a box on a bead: admin only while the box, or one of its callers, holds it."""
    holder = (await call.services.slots.beads.show(call.parameters["id"])).assignee or ""
    principal = call.caller.principal
    return (
        frozenset({"admin"})
        if holder == principal or holder.startswith(f"{principal}:")
        else frozenset()
    )


async def ready(call: Call) -> Reply:
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    beads, parent_id = call.services.slots.beads, call.query.get("parent_id")
    page = await beads.ready(parent_id=parent_id, limit=limit, cursor=call.query.get("cursor"))
    if call.caller.agent_id:
        page = replace(
            page, items=tuple([bead for bead in page.items if await is_owned(call, bead)])
        )
    return Reply(page)


async def list_beads(call: Call) -> Reply:
    filter = await restrict_filter(
        call,
        BeadFilter.from_wire({name: call.query[name] for name in FILTERS if name in call.query}),
    )
    limit = call.integer("limit", DEFAULT_PAGE, *LIMIT)
    return Reply(
        await call.services.slots.beads.list(filter, limit=limit, cursor=call.query.get("cursor"))
    )


async def show(call: Call) -> Reply:
    await check_bead(call, call.parameters["id"])
    return Reply(await call.services.slots.beads.show(call.parameters["id"]))
