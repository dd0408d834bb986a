"""Beads over HTTP."""

from dataclasses import replace

from starlette.responses import Response

from agentbox.adapters.runtime.adapter import Page
from agentbox.adapters.runtime.context import as_caller, current
from agentbox.api.auth.access import require
from agentbox.api.auth.naming import resolve_principal
from agentbox.api.auth.ownership import agent_tag, check_bead, is_owned, restrict_filter
from agentbox.api.http.request import ApiRequest
from agentbox.contracts.beads import LIMIT, Bead, BeadFilter, BeadSpec, Claim, NewBead
from agentbox.contracts.bodies import (
    ClaimBody,
    ClaimNextBody,
    CloseBody,
    HeartbeatBody,
    ReleaseBody,
)
from agentbox.core.http.responses import RecordResponse

FILTERS = ("status", "kind", "parent_id", "tag", "assignee", "creator")
DEFAULT_PAGE = 100


def _spec(request: ApiRequest) -> BeadSpec:
    body = request.record(NewBead)
    creator = resolve_principal(request, "/creator", body.creator or None)
    return replace(
        body, creator=creator, dedup_key=_scoped_key(request, request.dedup_key(body.dedup_key))
    )


def _scoped_key(request: ApiRequest, key: str | None) -> str | None:
    """Prefixes the keys of an agent: with another agent's key it would see that bead, or block a
    future one.
    """
    return (
        f"{request.caller.principal}:{key}" if key is not None and request.caller.agent_id else key
    )


async def create_epic(request: ApiRequest) -> Response:
    """201 when it was created, 200 when its dedup_key exists."""
    bead, created = await request.services.slots.beads.create_epic(_spec(request))
    return RecordResponse(bead, 201 if created else 200)


async def create_child(request: ApiRequest) -> Response:
    """201 when it was created, 200 when its dedup_key exists."""
    await check_bead(request, request.parameters["id"])
    bead, created = await request.services.slots.beads.create_child(
        request.parameters["id"], _spec(request)
    )
    return RecordResponse(bead, 201 if created else 200)


async def add_dep(request: ApiRequest) -> None:
    await check_bead(request, request.parameters["id"])
    await check_bead(request, request.parameters["blocker"])
    await request.services.slots.beads.add_dep(
        request.parameters["id"], request.parameters["blocker"]
    )


async def remove_dep(request: ApiRequest) -> None:
    await check_bead(request, request.parameters["id"])
    await request.services.slots.beads.remove_dep(
        request.parameters["id"], request.parameters["blocker"]
    )


async def claim(request: ApiRequest) -> Claim:
    await check_bead(request, request.parameters["id"])
    body = request.record(ClaimBody)
    assignee = resolve_principal(request, "/assignee", body.assignee)
    beads = request.services.slots.beads
    return await beads.claim(
        request.parameters["id"], assignee, lease_id=body.lease_id, lease_s=body.lease_s
    )


async def claim_next(request: ApiRequest) -> Claim | None:
    """204 when nothing is ready. An agent gets children of its own beads, or beads assigned to
    it.
    """
    body = request.record(ClaimNextBody)
    tags = body.tags
    if request.caller.agent_id:
        if body.parent_id is None:
            if (tag := agent_tag(request.caller)) is None:
                return None
            tags = (*tags, tag)
        else:
            await check_bead(request, body.parent_id)
    return await request.services.slots.beads.claim_next(
        resolve_principal(request, "/assignee", body.assignee),
        lease_id=body.lease_id,
        lease_s=body.lease_s,
        parent_id=body.parent_id,
        tags=tags,
    )


async def heartbeat(request: ApiRequest) -> Claim:
    await check_bead(request, request.parameters["id"])
    body = request.record(HeartbeatBody)
    beads = request.services.slots.beads
    return await beads.heartbeat(request.parameters["id"], body.lease_id, lease_s=body.lease_s)


async def release(request: ApiRequest) -> Bead:
    await check_bead(request, request.parameters["id"])
    body = request.record(ReleaseBody)
    beads = request.services.slots.beads
    return await beads.release(
        request.parameters["id"], body.lease_id, delay_s=body.delay_s, note=body.note
    )


async def close_bead(request: ApiRequest) -> Bead:
    """`force` true needs the scope admin, false gives up its effect. A box may force its own
    beads.
    """
    await check_bead(request, request.parameters["id"])
    body = request.record(CloseBody)
    context = current()
    if body.force and request.caller.box:
        context = replace(context, scopes=context.scopes | await _box_scopes(request))
    elif body.force:
        require(request.caller, ("admin",))
    if body.force is False:
        context = replace(context, scopes=context.scopes - {"admin"})
    with as_caller(context):
        return await request.services.slots.beads.close_bead(
            request.parameters["id"],
            outcome=body.outcome,
            note=body.note,
            result=body.result,
            lease_id=body.lease_id,
        )


async def _box_scopes(request: ApiRequest) -> frozenset[str]:
    """The scopes of a box on a bead: admin only while the box, or one of its callers, holds it."""
    holder = (await request.services.slots.beads.show(request.parameters["id"])).assignee or ""
    principal = request.caller.principal
    return (
        frozenset({"admin"})
        if holder == principal or holder.startswith(f"{principal}:")
        else frozenset()
    )


async def ready(request: ApiRequest) -> Page[Bead]:
    limit = request.integer("limit", DEFAULT_PAGE, *LIMIT)
    beads, parent_id = request.services.slots.beads, request.query.get("parent_id")
    page = await beads.ready(parent_id=parent_id, limit=limit, cursor=request.query.get("cursor"))
    if request.caller.agent_id:
        page = replace(
            page, items=tuple([bead for bead in page.items if await is_owned(request, bead)])
        )
    return page


async def list_beads(request: ApiRequest) -> Page[Bead]:
    filter = await restrict_filter(
        request,
        BeadFilter.from_wire(
            {name: request.query[name] for name in FILTERS if name in request.query}
        ),
    )
    limit = request.integer("limit", DEFAULT_PAGE, *LIMIT)
    return await request.services.slots.beads.list(
        filter, limit=limit, cursor=request.query.get("cursor")
    )


async def show(request: ApiRequest) -> Bead:
    await check_bead(request, request.parameters["id"])
    return await request.services.slots.beads.show(request.parameters["id"])
