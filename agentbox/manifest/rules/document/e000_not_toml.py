"""E000: the file is not valid TOML. Found by the loader; no other rule can run."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E000", "0.1"
TITLE = "not TOML"
REASON = """A file that is not valid TOML has no meaning. The parser's reason, line and column are
shown, and no other rule runs."""
READS = ("**",)
BAD = "x = "
GOOD = ""


def check(context: RuleContext) -> Iterator[Finding]:
    """Never called on invalid TOML: the engine returns the loader's finding."""
    yield from (finding for finding in context.inputs.manifest.findings if finding.code == CODE)
