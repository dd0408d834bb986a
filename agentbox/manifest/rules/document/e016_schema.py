"""E016: the manifest does not fit the schema. The loader finds each place."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E016", "0.1"
TITLE = "does not fit the schema"
WHY = """A misspelt key or a value of the wrong kind would otherwise be ignored, and the box would be another one than
was meant. A value that is refused is withdrawn: rules that need it are listed as not evaluated."""
READS = ("**",)
BAD = """
[resources]
memry = "4GiB"
"""
GOOD = """
[resources]
memory = "4GiB"
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """What the schema refused."""
    context.keys_read.add("**")
    yield from (finding for finding in context.inputs.manifest.findings if finding.code == CODE)
