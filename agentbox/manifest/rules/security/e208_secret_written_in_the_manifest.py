"""E208: a credential as a value."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.secrets import is_credential

CODE, SINCE = "E208", "0.1"
TITLE = "secret written in the manifest"
REASON = """A manifest is displayed, diffed, copied into the image and kept in version control. A
credential in it is exposed."""
READS = ("**",)
BAD = """
[adapters.orchestrator]
use = "external-stdio"
command = ["/opt/bridge", "--key", "sk-0123456789abcdef0123"]
"""
GOOD = """
[adapters.orchestrator]
use = "external-stdio"
command = ["/opt/bridge", "--key-file", "/run/secrets/KEY"]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per key; the value is never shown."""
    for key in dict.fromkeys(key for key, text in context.strings() if is_credential(text)):
        yield context.finding(
            key,
            message="the value looks like a credential",
            remedy="Replace that credential where it was issued, and name a variable or a file "
            "here instead.",
        )
