"""E000: the file is no TOML document. The loader finds it; nothing else can run then."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E000", "0.1"
TITLE = "not TOML"
WHY = """A file that the parser refuses says nothing about a box. The parser's reason, line and column are shown, and
no other rule runs."""
READS = ("**",)
BAD = "x = "
GOOD = ""


def check(context: RuleContext) -> Iterator[Finding]:
    """Never called on a broken file: the engine ends the run with the loader's finding."""
    yield from (finding for finding in context.inputs.manifest.findings if finding.code == CODE)
