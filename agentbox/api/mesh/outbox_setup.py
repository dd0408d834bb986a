"""Builds the outbox."""

from typing import TYPE_CHECKING

from agentbox.adapters.runtime.slots import Slots
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from agentbox.mesh.outbox.outbox import Outbox


def make_outbox(
    plan: Plan, paths: Paths, slots: Slots, registry: "CollectorRegistry"
) -> "Outbox | None":
    """None unless beads are shared with other boxes; only then its library is imported."""
    if not plan.slots["beads"].use.startswith("external-"):
        return None
    from agentbox.mesh.outbox.metrics import register_metrics
    from agentbox.mesh.outbox.outbox import Outbox

    outbox = Outbox(paths.slot("mesh"), slots.journal.record_soon)
    register_metrics(outbox, registry)
    return outbox
