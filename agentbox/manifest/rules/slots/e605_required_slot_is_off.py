"""E605: a required slot that is off."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

CODE, SINCE = "E605", "0.1"
TITLE = "required slot is off"
REASON = "A required slot that is off is never healthy, so `/ready` would never return 200."
READS = (
    "adapters.beads.use",
    "adapters.pods.use",
    "adapters.memory.use",
    "adapters.events.use",
    "adapters.orchestrator.use",
    "adapters.beads.required",
    "adapters.pods.required",
    "adapters.memory.required",
    "adapters.events.required",
    "adapters.orchestrator.required",
)
BAD = """
[adapters.memory]
use = "off"
required = true
"""
GOOD = """
[adapters.memory]
use = "off"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per slot."""
    for slot in SLOTS:
        if (
            context[f"adapters.{slot}.use"] == "off"
            and context.raw_value(f"adapters.{slot}.required") is True
        ):
            yield context.finding(
                f"adapters.{slot}.required",
                message=f"the slot {slot} is off and required: `/ready` would never return 200",
                remedy=f"Drop adapters.{slot}.required, or choose an implementation in "
                f"adapters.{slot}.use.",
                related=(f"adapters.{slot}.use",),
            )
