"""E001: external beads or pods without an endpoint."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E001", "0.1"
TITLE = "external slot without a target"
REASON = """\
An external slot needs an address: its own endpoint, or that of a mesh host. Without either
every call fails."""
READS = (
    "adapters.beads.use",
    "adapters.beads.endpoint",
    "adapters.pods.use",
    "adapters.pods.endpoint",
    "mesh.mode",
)
BAD = """
[adapters.beads]
use = "external-http"
"""
GOOD = """
[adapters.beads]
use = "external-http"
endpoint = "https://beads.example"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per slot."""
    for slot in ("beads", "pods"):
        use, endpoint = context[f"adapters.{slot}.use"], context[f"adapters.{slot}.endpoint"]
        if (
            use in ("external-http", "external-solid")
            and not endpoint
            and context["mesh.mode"] != "client"
        ):
            yield context.finding(
                f"adapters.{slot}.use",
                message=f'the slot is "{use}" and has no endpoint',
                remedy=f'Set adapters.{slot}.endpoint, or mesh.mode = "client" with mesh.host_url.',
                related=("mesh.mode",),
            )
