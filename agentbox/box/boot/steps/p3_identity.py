"""Phase 3: the box's key pair, where the plan has one."""

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError

PHASE, BUDGET_MS = "3", 60
FEATURE = "sovereign-mesh"


def run(context: Context) -> None:
    """Nothing without the feature. A plan that has it is refused: this version cannot make an identity."""
    if FEATURE in context.plan.features:
        raise BootError(
            "cannot make the identity of this box: this version of agentbox has none",
            "Set sovereign_mesh.enabled = false, then run `agentbox up`.",
        )
