"""Phase B8: `/run/agentbox/runtime.sh`, variables for shells in the box. Never a secret."""

import shlex

from agentbox.box.boot.context import Context
from agentbox.core.files.atomic import replace

PHASE, BUDGET_MS = "B8", 5


def run(context: Context) -> None:
    """Writes the URL of the API and the ids of this boot and plan."""
    hints = {
        "AGENTBOX_URL": f"http://127.0.0.1:{context.plan.api.port}",
        "AGENTBOX_BOOT_ID": context.log.boot_id,
        "AGENTBOX_PLAN_DIGEST": context.plan.digest,
        "AGENTBOX_NAME": context.plan.name,
    }
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(hints.items())]
    replace(context.paths.runtime_hints, "".join(lines).encode(), durable=False)
