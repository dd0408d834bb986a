# Written by tools/sync_client.py from async_client/beads.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""Work items with leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbox.client.transport import decode, decode_optional, idempotency_header, without_none

if TYPE_CHECKING:
    from datetime import datetime

    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.beads import Bead, Claim
    from agentbox.core.records.page import Page


class BeadsClient:
    """Work items with leases. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def create_epic(
        self,
        title: str,
        *,
        creator: str = "",
        body: str = "",
        priority: int = 5,
        tags: Sequence[str] = (),
        data: Mapping[str, Any] | None = None,
        dedup_key: str | None = None,
        not_before: datetime | None = None,
        every: str | None = None,
        overlap: str = "skip",
        max_attempts: int = 5,
        request_id: str = "",
    ) -> tuple[Bead, bool]:
        """A new epic. The same `request_id` has one effect."""
        from agentbox.contracts.beads import Bead

        response = self._box.request(
            "create_epic",
            body={
                "title": title,
                "creator": creator,
                "body": body,
                "priority": priority,
                "tags": tags,
                "overlap": overlap,
                "max_attempts": max_attempts,
                **without_none(
                    {"data": data, "dedup_key": dedup_key, "not_before": not_before, "every": every}
                ),
            },
            headers=idempotency_header(request_id),
        )
        return decode(Bead, response), response.status_code == 201

    def create_child(
        self,
        parent_id: str,
        title: str,
        *,
        creator: str = "",
        body: str = "",
        priority: int = 5,
        tags: Sequence[str] = (),
        data: Mapping[str, Any] | None = None,
        dedup_key: str | None = None,
        not_before: datetime | None = None,
        every: str | None = None,
        overlap: str = "skip",
        max_attempts: int = 5,
        request_id: str = "",
    ) -> tuple[Bead, bool]:
        """A new bead below another. The same `request_id` has one effect."""
        from agentbox.contracts.beads import Bead

        response = self._box.request(
            "create_child",
            {"id": parent_id},
            body={
                "title": title,
                "creator": creator,
                "body": body,
                "priority": priority,
                "tags": tags,
                "overlap": overlap,
                "max_attempts": max_attempts,
                **without_none(
                    {"data": data, "dedup_key": dedup_key, "not_before": not_before, "every": every}
                ),
            },
            headers=idempotency_header(request_id),
        )
        return decode(Bead, response), response.status_code == 201

    def add_dep(self, bead_id: str, blocker_id: str) -> None:
        """The bead waits for the blocker."""
        self._box.request("add_dep", {"id": bead_id, "blocker": blocker_id})

    def remove_dep(self, bead_id: str, blocker_id: str) -> None:
        """Removes the dependency on the blocker."""
        self._box.request("remove_dep", {"id": bead_id, "blocker": blocker_id})

    def claim(
        self,
        bead_id: str,
        assignee: str | None = None,
        *,
        lease_id: str,
        lease_s: int | None = None,
    ) -> Claim:
        """Takes a lease on one bead."""
        from agentbox.contracts.beads import Claim

        response = self._box.request(
            "claim",
            {"id": bead_id},
            body={"lease_id": lease_id, **without_none({"assignee": assignee, "lease_s": lease_s})},
        )
        return decode(Claim, response)

    def claim_next(
        self,
        assignee: str | None = None,
        *,
        lease_id: str,
        lease_s: int | None = None,
        parent_id: str | None = None,
        tags: Sequence[str] = (),
    ) -> Claim | None:
        """Takes a lease on the first ready bead."""
        from agentbox.contracts.beads import Claim

        response = self._box.request(
            "claim_next",
            body={
                "lease_id": lease_id,
                "tags": tags,
                **without_none({"assignee": assignee, "lease_s": lease_s, "parent_id": parent_id}),
            },
        )
        return decode_optional(Claim, response)

    def heartbeat(self, bead_id: str, lease_id: str, *, lease_s: int | None = None) -> Claim:
        """Extends a lease."""
        from agentbox.contracts.beads import Claim

        response = self._box.request(
            "heartbeat",
            {"id": bead_id},
            body={"lease_id": lease_id, **without_none({"lease_s": lease_s})},
        )
        return decode(Claim, response)

    def release(self, bead_id: str, lease_id: str, *, delay_s: int = 0, note: str = "") -> Bead:
        """Returns a lease; the bead is open again."""
        from agentbox.contracts.beads import Bead

        response = self._box.request(
            "release",
            {"id": bead_id},
            body={"lease_id": lease_id, "delay_s": delay_s, "note": note},
        )
        return decode(Bead, response)

    def close_bead(
        self,
        bead_id: str,
        *,
        outcome: str = "done",
        note: str = "",
        result: Any = None,
        lease_id: str | None = None,
        force: bool | None = None,
    ) -> Bead:
        """Closes a bead with outcome, note and result. A claimed one needs its lease id, or scope
        admin."""
        from agentbox.contracts.beads import Bead

        response = self._box.request(
            "close_bead",
            {"id": bead_id},
            body={
                "outcome": outcome,
                "note": note,
                **without_none({"result": result, "lease_id": lease_id, "force": force}),
            },
        )
        return decode(Bead, response)

    def ready(
        self, *, parent_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Bead]:
        """Beads that can be claimed now, by priority."""
        from agentbox.contracts.beads import Bead
        from agentbox.core.records.page import Page

        response = self._box.request(
            "ready_beads", query={"parent_id": parent_id, "limit": limit, "cursor": cursor}
        )
        return decode(Page[Bead], response)

    def list(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        parent_id: str | None = None,
        tag: str | None = None,
        assignee: str | None = None,
        creator: str | None = None,
        id_prefix: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Bead]:
        """Beads by filter, in order of id."""
        from agentbox.contracts.beads import Bead
        from agentbox.core.records.page import Page

        response = self._box.request(
            "list_beads",
            query={
                "status": status,
                "kind": kind,
                "parent_id": parent_id,
                "tag": tag,
                "assignee": assignee,
                "creator": creator,
                "id_prefix": id_prefix,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return decode(Page[Bead], response)

    def show(self, bead_id: str) -> Bead:
        """One bead."""
        from agentbox.contracts.beads import Bead

        response = self._box.request("show_bead", {"id": bead_id})
        return decode(Bead, response)
