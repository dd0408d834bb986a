"""E018: a placeholder that was not replaced."""

import re
from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.security._credentials import READS as _READS
from agentbox.manifest.rules.security._credentials import credentials
from agentbox.manifest.secrets import is_placeholder
from agentbox.manifest.toml_text import format_short

CODE, SINCE = "E018", "0.1"
TITLE = "placeholder left in"
REASON = """A placeholder is valid text, so the box would start and fail at its first call, or use a
publicly known secret."""
READS = ("**", *_READS)
BAD = """
[api]
public_base = "https://change-me"
"""
GOOD = """
[api]
public_base = "https://box.example"
"""
ENVIRONMENT = True


_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^]]*\]|[^:/?#]*)")


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per text; variables are checked only with the environment, and their values are
    not shown.
    """
    for key, text in context.strings():
        if key.rpartition(".")[2] in ("command", "args", "patterns"):
            continue
        if is_placeholder(text) or ((host := _HOST.match(text)) and is_placeholder(host[1])):
            yield context.finding(
                key,
                message=f"the placeholder {format_short(text)} is not a value",
                remedy=f"Write the value of {key}.",
            )
    for key, need in credentials(context):
        if is_placeholder(context.variable(context[key])):
            yield context.finding(
                key,
                message=f"the variable {context[key]} contains a placeholder; {need} needs a value",
                remedy=f"Set {context[key]} in .env beside the manifest or in the environment.",
            )
