"""Beads of another box over its API. A lost reply causes no second effect (B16)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from agentbox.adapters.beads import checks
from agentbox.adapters.beads.principal_mapping import PrincipalMapping
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.box_peer import BoxPeer, RepeatingPeer
from agentbox.adapters.runtime.http_connection import ReplyLost
from agentbox.adapters.runtime.input_checks import check_range, check_text, json_text
from agentbox.client.async_client.beads import AsyncBeadsClient
from agentbox.contracts import beads
from agentbox.contracts.beads import ALL, Bead, BeadFilter, BeadSpec, Claim
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import JsonValue
from agentbox.core.slot_errors import AdapterError, AlreadyClaimed, LeaseLost
from agentbox.manifest.slot_options import HttpOptions


class ExternalHttpBeads(Adapter):
    """`endpoint` is the address of the other box; the token is one of that box and may set creators
    and assignees. `box_at_host` is set with the token of a mesh session, which may set names
    of this box only (`PrincipalMapping`)."""

    cfg: SlotConfig[HttpOptions]
    slot = "beads"
    impl = "external-http"

    def __init__(self, cfg: SlotConfig[HttpOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._peer = BoxPeer(cfg)
        self._remote = AsyncBeadsClient(self._peer)
        self._repeating = AsyncBeadsClient(RepeatingPeer(self._peer))
        self._principals = PrincipalMapping(cfg.box_at_host)

    async def open(self, deadline: Deadline) -> None:
        await self._peer.open(self.contract_version)
        try:
            await self._remote.ready(limit=1)
        except BaseException:
            await self._peer.close()
            raise

    async def close(self) -> None:
        await self._peer.close()

    async def health(self) -> Health:
        """Query the peer's store."""
        try:
            await self._peer.request("ready_beads", query={"limit": 1}, idempotent=False)
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "")

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create(self._repeating.create_epic, spec)

    async def create_child(self, parent_id: str, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create(partial(self._repeating.create_child, parent_id), spec)

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._remote.add_dep(bead_id, blocker_id)

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._remote.remove_dep(bead_id, blocker_id)

    async def claim(
        self, bead_id: str, assignee: str, *, lease_id: str, lease_s: int | None = None
    ) -> Claim:
        checks.check_lease(lease_id, lease_s)
        try:
            return self._claim_to_local(
                await self._remote.claim(
                    bead_id, self._assignee(assignee), lease_id=lease_id, lease_s=lease_s
                )
            )
        except AlreadyClaimed as error:
            members = {
                **error.members,
                "assignee": self._principals.to_local(str(error.members["assignee"])),
            }
            raise AlreadyClaimed(error.message, **members) from error

    async def claim_next(
        self,
        assignee: str,
        *,
        lease_id: str,
        lease_s: int | None = None,
        parent_id: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> Claim | None:
        checks.check_tags(tags)
        checks.check_lease(lease_id, lease_s)
        claim = await self._remote.claim_next(
            self._assignee(assignee),
            lease_id=lease_id,
            lease_s=lease_s,
            parent_id=parent_id,
            tags=tags,
        )
        return None if claim is None else self._claim_to_local(claim)

    async def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        checks.check_lease(lease_id, lease_s)
        return self._claim_to_local(
            await self._remote.heartbeat(bead_id, lease_id, lease_s=lease_s)
        )

    async def release(
        self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = ""
    ) -> Bead:
        """A release whose reply was lost is sent again; LeaseLost then means that the first one
        arrived."""
        checks.check_release(delay_s, note)
        checks.check_lease(lease_id)
        send = partial(AsyncBeadsClient.release, delay_s=delay_s, note=note)
        try:
            return self._to_local(await send(self._remote, bead_id, lease_id))
        except ReplyLost:
            pass
        try:
            return self._to_local(await send(self._repeating, bead_id, lease_id))
        except LeaseLost:
            current = await self.show(bead_id)
            if current.status == "closed":
                raise
            return current

    async def close_bead(
        self,
        bead_id: str,
        *,
        outcome: str = "done",
        note: str = "",
        result: JsonValue = None,
        lease_id: str | None = None,
    ) -> Bead:
        checks.check_outcome(outcome)
        checks.check_note(note)
        json_text(result, "/result", max_bytes=beads.MAX_DOCUMENT)
        bead = await self._remote.close_bead(
            bead_id,
            outcome=outcome,
            note=note,
            result=result,
            lease_id=lease_id,
            force="admin" in context.current().scopes,
        )
        return self._to_local(bead)

    async def ready(
        self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        return self._page_to_local(
            await self._remote.ready(parent_id=parent_id, limit=limit, cursor=cursor)
        )

    async def show(self, bead_id: str) -> Bead:
        return self._to_local(await self._remote.show(bead_id))

    async def list(
        self, filter: BeadFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        members = self._principals.filter_to_host(filter).to_wire()
        return self._page_to_local(await self._remote.list(**members, limit=limit, cursor=cursor))

    async def _create(
        self, create: Callable[..., Awaitable[tuple[Bead, bool]]], spec: BeadSpec
    ) -> tuple[Bead, bool]:
        """A bead without a key gets a generated one, so that a retry finds the bead of the first
        attempt."""
        checked = checks.check_spec(spec)
        members = {name: getattr(checked, name) for name in _SPEC_FIELDS}
        members["creator"] = self._principals.to_host(spec.creator)
        members["dedup_key"] = spec.dedup_key if spec.dedup_key is not None else f"req:{uuid7()}"
        bead, created = await create(**members)
        return self._to_local(bead), spec.dedup_key is None or created

    def _assignee(self, assignee: str) -> str:
        return self._principals.to_host(
            check_text(assignee, "/assignee", max_length=beads.MAX_TITLE)
        )

    def _to_local(self, bead: Bead) -> Bead:
        return self._principals.bead_to_local(bead)

    def _claim_to_local(self, claim: Claim) -> Claim:
        return replace(claim, bead=self._to_local(claim.bead))

    def _page_to_local(self, page: Page[Bead]) -> Page[Bead]:
        return replace(page, items=tuple(map(self._to_local, page.items)))


_SPEC_FIELDS = tuple(BeadSpec.__dataclass_fields__)
