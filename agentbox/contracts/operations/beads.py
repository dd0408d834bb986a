"""Operations of the slot beads. A lease id is in a body, never in a URL."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from agentbox.contracts.beads import Beads, NewBead
from agentbox.contracts.routes.operation import WITHOUT_TOOL, RequestMember, read, tool, write
from agentbox.contracts.routes.resource import Resource

_NEW: Mapping[str, Any] = {
    "body": NewBead,
    "statuses": (201, 200),
    "headers": ("Idempotency-Key",),
    "agent": WITHOUT_TOOL,
    "redact": ("/spec/title", "/spec/body", "/spec/tags/**", "/spec/data/**"),
    "identifiers": ("/spec/dedup_key",),
}
_write = partial(write, audit=True)
BEADS = Resource(
    "beads",
    Beads,
    operations=(
        _write(
            "create_epic",
            "POST /v1/beads/epics",
            "A new epic; 200 when its dedup_key exists already.",
            **_NEW,
        ),
        _write(
            "create_child",
            "POST /v1/beads/{id}/children",
            "A new bead below another; 200 when its dedup_key exists already.",
            **_NEW,
        ),
        _write(
            "add_dep",
            "PUT /v1/beads/{id}/deps/{blocker}",
            "The bead waits for the blocker.",
            statuses=(204,),
            idempotent=True,
            agent=tool("bead/add_dep", "Makes the bead wait for the blocker."),
        ),
        _write(
            "remove_dep",
            "DELETE /v1/beads/{id}/deps/{blocker}",
            "Removes the dependency on the blocker.",
            statuses=(204,),
            idempotent=True,
            agent=tool("bead/remove_dep"),
        ),
        _write(
            "claim",
            "POST /v1/beads/{id}/claim",
            "Takes a lease on one bead.",
            idempotent=True,
            agent=tool(
                "bead/claim",
                "Leases one of your beads; the result has the lease_id.",
                optional=("lease_id",),
                custom="lease",
            ),
        ),
        _write(
            "claim_next",
            "POST /v1/beads/claims",
            "Takes a lease on the first ready bead; 204 when there is none.",
            statuses=(200, 204),
            idempotent=True,
            agent=tool(
                "bead/claim_next",
                "Leases the first ready bead that is assigned to you or below parent_id; "
                "null if there is none.",
                optional=("lease_id",),
                custom="lease",
            ),
        ),
        write(
            "heartbeat",
            "POST /v1/beads/{id}/heartbeat",
            "Extends a lease.",
            idempotent=True,
            agent=tool("bead/heartbeat"),
        ),
        _write(
            "release",
            "POST /v1/beads/{id}/release",
            "Returns a lease; the bead is open again.",
            redact=("/note",),
            agent=tool("bead/release", "Releases a lease."),
        ),
        _write(
            "close_bead",
            "POST /v1/beads/{id}/close",
            "Closes a bead with outcome, note and result. A claimed one needs its lease id, or "
            "scope admin.",
            body="CloseBody",
            body_text="A claimed bead needs its lease id, or the scope admin without "
            "`force` = false.",
            extra=(RequestMember(name="force", annotation=bool | None, required=False),),
            idempotent=True,
            redact=("/note", "/result/**"),
            agent=tool(
                "bead/close",
                "Closes a bead with an outcome (done, failed, cancelled), note and result.",
            ),
        ),
        read(
            "ready",
            "GET /v1/beads/ready",
            "Beads that can be claimed now, by priority.",
            route="ready_beads",
            agent=tool("bead/ready", "Lists your beads that can be claimed now."),
        ),
        read(
            "list",
            "GET /v1/beads",
            "Beads by filter, in order of id.",
            route="list_beads",
            agent=tool(
                "bead/list",
                "Lists beads that you created; with parent_id the children of one of your "
                "beads; with tag or assignee those assigned to you.",
                without=("id_prefix",),
            ),
        ),
        read(
            "show",
            "GET /v1/beads/{id}",
            "One bead.",
            route="show_bead",
            agent=tool("bead/show", "Returns one of your beads."),
        ),
    ),
)
RESOURCES = (BEADS,)
