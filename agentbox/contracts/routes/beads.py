"""Routes of the slot beads. A lease id is in a body, never in a URL."""

from agentbox.contracts.routes.route import Route

READ, WRITE = ("beads:read",), ("beads:write",)
_PAGE = ("limit", "cursor")

BEADS: tuple[Route, ...] = (
    Route(
        name="create_epic", method="POST", path="/v1/beads/epics", scope=WRITE, handler="beads.create_epic",
        request="NewBead", response="Bead", statuses=(201, 200), body_limit=None, headers=("Idempotency-Key",),
        summary="A new epic; 200 when its dedup_key is known already.",
    ),
    Route(
        name="create_child", method="POST", path="/v1/beads/{id}/children", scope=WRITE, handler="beads.create_child",
        request="NewBead", response="Bead", statuses=(201, 200), body_limit=None, headers=("Idempotency-Key",),
        summary="A new bead below another; 200 when its dedup_key is known already.",
    ),
    Route(
        name="add_dep", method="PUT", path="/v1/beads/{id}/deps/{blocker}", scope=WRITE, handler="beads.add_dep",
        statuses=(204,), summary="The bead waits for the blocker.",
    ),
    Route(
        name="remove_dep", method="DELETE", path="/v1/beads/{id}/deps/{blocker}", scope=WRITE,
        handler="beads.remove_dep", statuses=(204,), summary="The bead waits for the blocker no more.",
    ),
    Route(
        name="claim", method="POST", path="/v1/beads/{id}/claim", scope=WRITE, handler="beads.claim",
        request="ClaimBody", response="Claim", body_limit=None, summary="Takes a lease on one bead.",
    ),
    Route(
        name="claim_next", method="POST", path="/v1/beads/claims", scope=WRITE, handler="beads.claim_next",
        request="ClaimNextBody", response="Claim", statuses=(200, 204), body_limit=None,
        summary="Takes a lease on the first ready bead; 204 when there is none.",
    ),
    Route(
        name="heartbeat", method="POST", path="/v1/beads/{id}/heartbeat", scope=WRITE, handler="beads.heartbeat",
        request="HeartbeatBody", response="Claim", body_limit=None, summary="Extends a lease.",
    ),
    Route(
        name="release", method="POST", path="/v1/beads/{id}/release", scope=WRITE, handler="beads.release",
        request="ReleaseBody", response="Bead", body_limit=None, summary="Gives a lease back; the bead is open again.",
    ),
    Route(
        name="close_bead", method="POST", path="/v1/beads/{id}/close", scope=WRITE, handler="beads.close_bead",
        request="CloseBody", response="Bead", body_limit=None,
        summary="Closes a bead with outcome, note and result. A claimed one needs its lease id, or scope admin.",
    ),
    Route(
        name="ready_beads", method="GET", path="/v1/beads/ready", scope=READ, handler="beads.ready",
        response="Page[Bead]", query=("parent_id", *_PAGE), summary="What may be claimed now, in order of priority.",
    ),
    Route(
        name="list_beads", method="GET", path="/v1/beads", scope=READ, handler="beads.list_beads",
        response="Page[Bead]", query=("status", "kind", "parent_id", "tag", "assignee", "creator", *_PAGE),
        summary="Beads by filter, in order of id.",
    ),
    Route(
        name="show_bead", method="GET", path="/v1/beads/{id}", scope=READ, handler="beads.show", response="Bead",
        summary="One bead.",
    ),
)  # fmt: skip
