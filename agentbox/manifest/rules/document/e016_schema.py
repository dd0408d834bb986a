"""E016: the manifest does not conform to the schema. Found by the loader."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E016", "0.1"
TITLE = "does not fit the schema"
REASON = """\
A misspelt key or a value of the wrong type would otherwise be ignored, and the box would
differ from what was intended. Rules that need an invalid value are listed as not evaluated."""
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
    """The findings of the schema."""
    context.keys_read.add("**")
    yield from (finding for finding in context.inputs.manifest.findings if finding.code == CODE)
