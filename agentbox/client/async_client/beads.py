"""Beads and events of a box."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agentbox.client.async_client.api_caller import AsyncApiCaller
from agentbox.client.bead_records import Bead, BeadClaim, Event
from agentbox.client.transport import without_none


class AsyncBeadsClient:
    """Work items with leases. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def create_epic(self, title: str, *, request_id: str = "", **spec: Any) -> Bead:
        """Creates an epic; `spec` are the other members of a NewBead. The same `request_id` returns
        the same bead."""
        headers = {"Idempotency-Key": request_id} if request_id else None
        return Bead.from_wire(
            await self._box.call("create_epic", body={"title": title, **spec}, headers=headers)
        )

    async def create_child(
        self, parent_id: str, title: str, *, request_id: str = "", **spec: Any
    ) -> Bead:
        """Like `create_epic`, below another bead."""
        headers = {"Idempotency-Key": request_id} if request_id else None
        body = {"title": title, **spec}
        return Bead.from_wire(
            await self._box.call("create_child", {"id": parent_id}, body=body, headers=headers)
        )

    async def add_dep(self, bead_id: str, blocker_id: str) -> None:
        """Makes the bead wait for the blocker."""
        await self._box.call("add_dep", {"id": bead_id, "blocker": blocker_id})

    async def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        """Removes the dependency on the blocker."""
        await self._box.call("remove_dep", {"id": bead_id, "blocker": blocker_id})

    async def claim(
        self,
        bead_id: str,
        lease_id: str,
        *,
        assignee: str | None = None,
        lease_s: int | None = None,
    ) -> BeadClaim:
        """Leases a bead; `lease_id` is a random UUID of the caller. Repeating the call returns the
        same lease."""
        body = without_none({"lease_id": lease_id, "assignee": assignee, "lease_s": lease_s})
        return BeadClaim.from_wire(await self._box.call("claim", {"id": bead_id}, body=body))

    async def claim_next(
        self,
        lease_id: str,
        *,
        assignee: str | None = None,
        lease_s: int | None = None,
        parent_id: str | None = None,
        tags: Sequence[str] = (),
    ) -> BeadClaim | None:
        """Leases the first ready bead; None if there is none."""
        body = without_none(
            {"lease_id": lease_id, "assignee": assignee, "lease_s": lease_s, "parent_id": parent_id}
        )
        claim = await self._box.call("claim_next", body={**body, "tags": list(tags)})
        return None if claim is None else BeadClaim.from_wire(claim)

    async def heartbeat(
        self, bead_id: str, lease_id: str, *, lease_s: int | None = None
    ) -> BeadClaim:
        """Extends the lease."""
        body = without_none({"lease_id": lease_id, "lease_s": lease_s})
        return BeadClaim.from_wire(await self._box.call("heartbeat", {"id": bead_id}, body=body))

    async def release(
        self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = ""
    ) -> Bead:
        """Releases the lease; the bead is open again after `delay_s`."""
        body = {"lease_id": lease_id, "delay_s": delay_s, "note": note}
        return Bead.from_wire(await self._box.call("release", {"id": bead_id}, body=body))

    async def close(
        self,
        bead_id: str,
        *,
        outcome: str = "done",
        note: str = "",
        result: Any = None,
        lease_id: str | None = None,
        force: bool | None = None,
    ) -> Bead:
        """Closes a bead; a claimed one requires its lease id, or the scope admin."""
        body = {
            "outcome": outcome,
            "note": note,
            "result": result,
            **without_none({"lease_id": lease_id, "force": force}),
        }
        return Bead.from_wire(await self._box.call("close_bead", {"id": bead_id}, body=body))

    async def show(self, bead_id: str) -> Bead:
        """One bead."""
        return Bead.from_wire(await self._box.call("show_bead", {"id": bead_id}))

    async def ready(
        self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Bead], str | None]:
        """A page of claimable beads by priority, and the next cursor."""
        page = await self._box.call(
            "ready_beads", query={"parent_id": parent_id, "limit": limit, "cursor": cursor}
        )
        return [Bead.from_wire(item) for item in page["items"]], page["next_cursor"]

    async def list(
        self, *, limit: int = 100, cursor: str | None = None, **filters: str | None
    ) -> tuple[list[Bead], str | None]:
        """A page of beads filtered by status, kind, parent_id, tag, assignee, creator, and the next
        cursor."""
        page = await self._box.call(
            "list_beads", query={**filters, "limit": limit, "cursor": cursor}
        )
        return [Bead.from_wire(item) for item in page["items"]], page["next_cursor"]


class AsyncEventsClient:
    """The event journal. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def append(self, *events: Mapping[str, Any]) -> tuple[int, int]:
        """Appends NewEvents atomically; returns the first and the last sequence number."""
        appended = await self._box.call("append_events", body={"events": list(events)})
        return appended["first_seq"], appended["last_seq"]

    async def read(
        self, *, since: int = -1, limit: int = 100, types: Sequence[str] = (), **filters: str | None
    ) -> tuple[list[Event], int]:
        """Events after `since`, filtered by source, subject, agent_id, session_id, and the next
        `since`."""
        query = {**filters, "since": since, "limit": limit, "types": ",".join(types) or None}
        batch = await self._box.call("read_events", query=query)
        return [Event.from_wire(event) for event in batch["events"]], batch["next_since"]

    async def stream(
        self,
        *,
        since: int | None = None,
        types: Sequence[str] = (),
        reconnect_timeout: float = 60.0,
        **filters: str | None,
    ) -> AsyncIterator[Event]:
        """Live events, each once and in order, across reconnects. `since`: None starts now."""
        query = {
            **filters,
            "types": ",".join(types) or None,
            "since": since if since == -1 else None,
        }
        start = "" if since is None or since < 0 else str(since)
        async for event in self._box.stream(
            "stream_events", query=query, since=start, reconnect_timeout=reconnect_timeout
        ):
            yield Event.from_wire(json.loads(event.data))

    async def head(self) -> tuple[int, str]:
        """Sequence number and hash of the last event; -1 and zeros if there is none."""
        head = await self._box.call("head_event")
        return head["seq"], head["hash"]

    async def show(self, seq: int) -> Event:
        """One event."""
        return Event.from_wire(await self._box.call("show_event", {"seq": str(seq)}))

    async def delivery(self, *, limit: int = 100) -> Mapping[str, Any]:
        """The position of the event sink, and the events it permanently rejected."""
        delivery: Mapping[str, Any] = await self._box.call("event_delivery", query={"limit": limit})
        return delivery

    async def verify(self, *, from_seq: int = 0) -> Mapping[str, Any]:
        """Verifies the hash chain: `ok`, and the first broken event."""
        report: Mapping[str, Any] = await self._box.call(
            "verify_events", body={"from_seq": from_seq}, wait_s=300
        )
        return report
