"""E003: an external orchestrator uses stdin and stdout."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E003", "0.1"
TITLE = "orchestrator bridge is not stdio"
REASON = """The bridge is a program that this box starts; it communicates over stdin and stdout,
without a port. Network keys would be ignored, and without a command there is nothing to start."""
READS = (
    "adapters.orchestrator.use",
    "adapters.orchestrator.endpoint",
    "adapters.orchestrator.token_env",
    "adapters.orchestrator.token_file",
    "adapters.orchestrator.command",
)
BAD = """
[adapters.orchestrator]
use = "external-stdio"
endpoint = "https://bridge.example"
"""
GOOD = """
[adapters.orchestrator]
use = "external-stdio"
command = ["/opt/bridge"]
"""


_TABLE = "adapters.orchestrator"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per network key, and one for a missing command."""
    if context[f"{_TABLE}.use"] != "external-stdio":
        return
    for name in ("endpoint", "token_env", "token_file"):
        if context[f"{_TABLE}.{name}"]:
            yield context.finding(
                f"{_TABLE}.{name}",
                message="the bridge speaks over stdin and stdout and opens no port",
                remedy=f"Drop {_TABLE}.{name}.",
            )
    if not context[f"{_TABLE}.command"]:
        yield context.finding(
            f"{_TABLE}.command",
            message="the slot is external-stdio and no bridge program is named",
            remedy=f'Give {_TABLE}.command = ["/path/of/the/bridge"].',
        )
