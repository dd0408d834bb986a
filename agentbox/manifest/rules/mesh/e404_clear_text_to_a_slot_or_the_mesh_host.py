"""E404: tokens and records without encryption."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules._hosts import clear_text_host, is_loopback
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.slots import SLOTS

CODE, SINCE = "E404", "0.1"
TITLE = "clear text to a slot or the mesh host"
REASON = """Tokens and records would be readable on the network. The slot rejects such an address at
boot, so the box would not become ready."""
_COMMAND = "adapters.orchestrator.command"
READS = (
    "mesh.mode",
    "mesh.host_url",
    "adapters.beads.endpoint",
    "adapters.pods.endpoint",
    "adapters.memory.endpoint",
    "adapters.events.endpoint",
    "adapters.orchestrator.endpoint",
    _COMMAND,
)
BAD = """
[mesh]
mode = "client"
host_url = "http://mesh.internal"
[adapters]
beads.use = "external-http"
"""
GOOD = """
[mesh]
mode = "client"
host_url = "https://mesh.internal"
[adapters]
beads.use = "external-http"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key, and one per such address in the bridge's command."""
    keys = [f"adapters.{slot}.endpoint" for slot in SLOTS]
    if context["mesh.mode"] == "client":
        keys.insert(0, "mesh.host_url")
    addresses = [(key, context[key]) for key in keys]
    addresses += [(_COMMAND, argument.removeprefix("--url=")) for argument in context[_COMMAND]]
    for key, text in addresses:
        if (host := clear_text_host(text)) is not None and not is_loopback(host):
            yield context.finding(
                key,
                message=f"{key} sends tokens and records to {host} in the clear",
                remedy=f"Write {key} with https.",
            )
