"""E020: an exception whose gate is off."""

from collections.abc import Iterator

from agentbox.manifest.features.exceptions import gates_on
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, View

CODE, SINCE = "E020", "0.1"
TITLE = "exception for a feature that is off"
WHY = "The block would widen nothing today, and silently widen the box on the day when the feature is turned on."
READS = ("security.exceptions", *GATES)
BAD = "[security.exceptions.desktop]"
GOOD = ""
EACH = "security.exceptions"


def check(view: View) -> Iterator[Finding]:
    """One finding a block."""
    if view.entry in gates_on(view.features, view.on):
        return
    owners = [
        feature for feature in view.features.values() if feature.exception and feature.exception.key == view.entry
    ]
    gates = " or ".join(feature.gate.key for feature in owners if feature.gate)
    yield view.finding(
        "security.exceptions.*",
        message=f"the exception {view.entry} is written and {f'{gates} is off' if gates else 'no feature of this release needs it'}",
        remedy=f"Remove [security.exceptions.{view.entry}]" + (f", or turn {gates} on." if gates else "."),
    )
