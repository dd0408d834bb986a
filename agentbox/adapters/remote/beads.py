"""Beads of another box over its API. A lost reply causes no second effect (B16)."""

import builtins
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from agentbox.adapters.beads import checks
from agentbox.adapters.beads.principal_mapping import PrincipalMapping
from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.box_peer import BoxPeer
from agentbox.adapters.runtime.checks import check_range, check_text, json_text
from agentbox.adapters.runtime.http_connection import ReplyLost
from agentbox.contracts import beads
from agentbox.contracts.beads import ALL, Bead, BeadFilter, BeadSpec, Claim
from agentbox.core.deadline import Deadline
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import JsonValue, from_wire
from agentbox.core.slot_errors import AdapterError, AlreadyClaimed, LeaseLost, NotFound
from agentbox.manifest.slot_options import HttpOptions

# Path segments that clients and proxies drop or resolve; never a bead id.
_INVALID_IDS = ("", ".", "..")


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
        self._principals = PrincipalMapping(cfg.box_at_host)

    async def open(self, deadline: Deadline) -> None:
        await self._peer.open(self.contract_version)
        try:
            await self._peer.request("ready_beads", query={"limit": 1}, method="open")
        except BaseException:
            await self._peer.close()
            raise

    async def close(self) -> None:
        await self._peer.close()

    async def health(self) -> Health:
        """Query the peer's store."""
        try:
            await self._peer.request(
                "ready_beads", query={"limit": 1}, method="health", idempotent=False
            )
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "")

    async def create_epic(self, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create("create_epic", None, spec)

    async def create_child(self, parent_id: str, spec: BeadSpec) -> tuple[Bead, bool]:
        return await self._create("create_child", _path_parameters(parent_id), spec)

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._peer.request(
            "add_dep",
            {**_path_parameters(bead_id), "blocker": _checked_id(blocker_id)},
            method="add_dep",
        )

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        await self._peer.request(
            "remove_dep",
            {**_path_parameters(bead_id), "blocker": _checked_id(blocker_id)},
            method="remove_dep",
        )

    async def claim(
        self, bead_id: str, assignee: str, *, lease_id: str, lease_s: int | None = None
    ) -> Claim:
        body = _lease_body(lease_id, lease_s) | self._assignee(assignee)
        try:
            return self._claim(
                await self._request_json("claim", _path_parameters(bead_id), body=body)
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
        body = _lease_body(lease_id, lease_s) | self._assignee(assignee)
        response = await self._peer.request(
            "claim_next",
            body={**body, "parent_id": parent_id, "tags": list(tags)},
            method="claim_next",
        )
        return self._claim(response.json()) if response.content else None

    async def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        return self._claim(
            await self._request_json(
                "heartbeat", _path_parameters(bead_id), body=_lease_body(lease_id, lease_s)
            )
        )

    async def release(
        self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = ""
    ) -> Bead:
        """A release whose reply was lost is sent again; LeaseLost then means that the first one
        arrived."""
        checks.check_release(delay_s, note)
        body, parameters = (
            _lease_body(lease_id) | {"delay_s": delay_s, "note": note},
            _path_parameters(bead_id),
        )
        try:
            return self._bead(
                (
                    await self._peer.request(
                        "release", parameters, body=body, method="release", idempotent=False
                    )
                ).json()
            )
        except ReplyLost:
            pass
        try:
            return self._bead(await self._request_json("release", parameters, body=body))
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
        body = {
            "outcome": outcome,
            "note": note,
            "result": result,
            "lease_id": lease_id,
            "force": "admin" in context.current().scopes,
        }
        return self._bead(
            await self._request_json("close_bead", _path_parameters(bead_id), body=body)
        )

    async def ready(
        self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        return await self._page("ready_beads", {"parent_id": parent_id}, limit, cursor)

    async def show(self, bead_id: str) -> Bead:
        return self._bead(await self._request_json("show_bead", _path_parameters(bead_id)))

    async def list(
        self, filter: BeadFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        return await self._page(
            "list_beads", self._principals.filter_to_host(filter).to_wire(), limit, cursor
        )

    async def _create(
        self, name: str, parameters: Mapping[str, str] | None, spec: BeadSpec
    ) -> tuple[Bead, bool]:
        """A bead without a key gets a generated one, so that a retry finds the bead of the first
        attempt."""
        wire = checks.check_spec(spec).to_wire()
        generated_key = None if spec.dedup_key is not None else f"req:{uuid7()}"
        body = {field: wire[field] for field in _SPEC_FIELDS} | (
            {} if generated_key is None else {"dedup_key": generated_key}
        )
        body["creator"] = self._principals.to_host(spec.creator)
        response = await self._peer.request(name, parameters, body=body, method=name)
        return self._bead(
            response.json()
        ), generated_key is not None or response.status_code == httpx.codes.CREATED

    async def _page(
        self, name: str, query: Mapping[str, Any], limit: int, cursor: str | None
    ) -> Page[Bead]:
        check_range(limit, "/limit", beads.LIMIT)
        data = await self._request_json(name, query={**query, "limit": limit, "cursor": cursor})
        page = from_wire(Page[Bead], data)
        return Page(
            items=tuple(map(self._principals.bead_to_local, page.items)),
            next_cursor=page.next_cursor,
        )

    def _assignee(self, assignee: str) -> dict[str, str]:
        return {
            "assignee": self._principals.to_host(
                check_text(assignee, "/assignee", max_length=beads.MAX_TITLE)
            )
        }

    def _bead(self, wire: Any) -> Bead:
        return self._principals.bead_to_local(Bead.from_wire(wire))

    def _claim(self, wire: Any) -> Claim:
        claim = Claim.from_wire(wire)
        return replace(claim, bead=self._principals.bead_to_local(claim.bead))

    async def _request_json(
        self, name: str, parameters: Mapping[str, str] | None = None, **request: Any
    ) -> Any:
        return (await self._peer.request(name, parameters, method=name, **request)).json()


_SPEC_FIELDS: builtins.list[str] = list(BeadSpec.__dataclass_fields__)


def _path_parameters(bead_id: str) -> dict[str, str]:
    return {"id": _checked_id(bead_id)}


def _checked_id(bead_id: str) -> str:
    """Raises NotFound for ids that cannot be path segments."""
    if bead_id in _INVALID_IDS:
        raise NotFound("cannot find this bead", resource="bead", id=bead_id)
    return bead_id


def _lease_body(lease_id: str, lease_s: int | None = None) -> dict[str, Any]:
    checks.check_lease(lease_id, lease_s)
    return {"lease_id": lease_id} | ({} if lease_s is None else {"lease_s": lease_s})
