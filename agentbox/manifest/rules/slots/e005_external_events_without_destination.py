"""E005: external events without a destination."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E005", "0.1"
TITLE = "external events without a destination"
REASON = """\
With external-http all events are delivered to a service. Without an address or a mesh host
they would accumulate in the box."""
READS = ("adapters.events.use", "adapters.events.endpoint", "mesh.mode")
BAD = """
[adapters.events]
use = "external-http"
"""
GOOD = """
[adapters.events]
use = "external-http"
endpoint = "https://events.example"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding."""
    external = context["adapters.events.use"] == "external-http"
    if external and not context["adapters.events.endpoint"] and context["mesh.mode"] != "client":
        yield context.finding(
            "adapters.events.use",
            message="events are external and have no destination",
            remedy='Set adapters.events.endpoint, or mesh.mode = "client" with mesh.host_url.',
            related=("mesh.mode",),
        )
