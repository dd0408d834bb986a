"""Beads over HTTP, where more is done than the slot's call."""

from collections.abc import Sequence
from dataclasses import replace

from agentbox.adapters.runtime.context import as_caller, current
from agentbox.api.auth.authentication import Caller, require
from agentbox.api.auth.ownership import BeadOwnership, agent_tag
from agentbox.api.auth.write_attribution import resolve_principal
from agentbox.contracts.beads import Bead, BeadFilter, Beads, Claim, NewBead, Outcome
from agentbox.core.records.page import Page
from agentbox.core.records.wire import JsonValue


class BeadHandlers:
    """An agent's calls are restricted to its own beads."""

    def __init__(self, beads: Beads, ownership: BeadOwnership) -> None:
        self._beads, self._ownership = beads, ownership

    async def create_epic(self, caller: Caller, spec: NewBead) -> tuple[Bead, bool]:
        return await self._beads.create_epic(_complete(caller, spec))

    async def create_child(
        self, caller: Caller, parent_id: str, spec: NewBead
    ) -> tuple[Bead, bool]:
        await self._ownership.check(caller, parent_id)
        return await self._beads.create_child(parent_id, _complete(caller, spec))

    async def claim_next(
        self,
        caller: Caller,
        assignee: str,
        lease_id: str,
        lease_s: int | None,
        parent_id: str | None,
        tags: tuple[str, ...],
    ) -> Claim | None:
        """None when nothing is ready. An agent gets children of its own beads, or beads assigned to
        it.
        """
        if caller.agent_id:
            if parent_id is None:
                if (tag := agent_tag(caller)) is None:
                    return None
                tags = (*tags, tag)
            else:
                await self._ownership.check(caller, parent_id)
        return await self._beads.claim_next(
            assignee, lease_id=lease_id, lease_s=lease_s, parent_id=parent_id, tags=tags
        )

    async def close_bead(
        self,
        caller: Caller,
        bead_id: str,
        outcome: Outcome,
        note: str,
        result: JsonValue,
        lease_id: str | None,
        force: bool | None,
    ) -> Bead:
        """`force` true needs the scope admin, false gives up its effect. A box may force its own
        beads.
        """
        context = current()
        if force and caller.box:
            scopes = await self._box_scopes(caller, bead_id)
            context = replace(context, scopes=context.scopes | scopes)
        elif force:
            require(caller, ("admin",))
        if force is False:
            context = replace(context, scopes=context.scopes - {"admin"})
        with as_caller(context):
            return await self._beads.close_bead(
                bead_id, outcome=outcome, note=note, result=result, lease_id=lease_id
            )

    async def _box_scopes(self, caller: Caller, bead_id: str) -> frozenset[str]:
        """The scopes of a box on a bead: admin only while the box, or one of its callers, holds
        it.
        """
        holder = (await self._beads.show(bead_id)).assignee or ""
        holds = holder == caller.principal or holder.startswith(f"{caller.principal}:")
        return frozenset({"admin"}) if holds else frozenset()

    async def ready(
        self, caller: Caller, parent_id: str | None, limit: int, cursor: str | None
    ) -> Page[Bead]:
        page = await self._beads.ready(parent_id=parent_id, limit=limit, cursor=cursor)
        if not caller.agent_id:
            return page
        return replace(page, items=await self._owned(caller, page.items))

    async def _owned(self, caller: Caller, beads: Sequence[Bead]) -> tuple[Bead, ...]:
        return tuple([bead for bead in beads if await self._ownership.owns(caller, bead)])

    async def list(
        self, caller: Caller, filter: BeadFilter, limit: int, cursor: str | None
    ) -> Page[Bead]:
        restricted = await self._ownership.restrict(caller, filter)
        return await self._beads.list(restricted, limit=limit, cursor=cursor)


def _complete(caller: Caller, spec: NewBead) -> NewBead:
    """With its creator, and a dedup_key that is the agent's own: with another agent's key it would
    see that bead, or block a future one.
    """
    creator, key = resolve_principal(caller, "/creator", spec.creator or None), spec.dedup_key
    if key is not None and caller.agent_id:
        key = f"{caller.principal}:{key}"
    return replace(spec, creator=creator, dedup_key=key)
