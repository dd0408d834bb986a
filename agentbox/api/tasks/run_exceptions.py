"""Exceptions that end a run without closing its bead."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import structlog

from agentbox.api.tasks.spool import SpoolEntry
from agentbox.core.slot_errors import AdapterError

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots
    from agentbox.mesh.outbox.outbox import Outbox

OutboxCall: TypeAlias = tuple[Literal["close", "release"], dict[str, Any]]
_log = structlog.get_logger()


class LeaseLostToOther(Exception):
    """Another caller has the bead, or closed it: this run must end without changing it."""


class DeferredToNextBoot(Exception):
    """The spool entry stays, and the next start resumes the task: the box is shutting down, or the
    store permanently rejects the result.
    """


class StoredInOutbox(Exception):
    """The result is in the outbox, and the spool entry stays until the store of beads has accepted
    it.
    """


async def store_result(
    outbox: "Outbox | None",
    slots: "Slots",
    entry: SpoolEntry,
    op: Literal["close", "release"],
    body: dict[str, Any],
) -> bool:
    """Whether the outbox now has the result of that entry: only while the store of beads is down,
    and the outbox has capacity.
    """
    if outbox is None or not slots.is_down("beads"):
        return False
    try:
        await outbox.put(op, entry.task_id or "", entry.lease_id or "", entry.ref, body)
    except AdapterError as error:
        _log.error("result not stored", task_id=entry.task_id, reason=error.message)
        return False
    return True
