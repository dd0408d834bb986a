"""Phase 3: the key pair of the box, where the plan has one."""

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError

PHASE, BUDGET_MS = "3", 60
FEATURE = "sovereign-mesh"


def run(context: Context) -> None:
    """Does nothing without the feature. A plan with it is rejected: this version cannot create an
    identity.
    """
    if FEATURE in context.plan.features:
        raise BootError(
            "cannot create the identity of this box: not supported in this release",
            "Set sovereign_mesh.enabled = false, then run `agentbox up`.",
        )
