"""E202: the box is widened without acknowledgement."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.security import _widening

CODE, SINCE = "E202", "0.1"
TITLE = "widening not acknowledged"
REASON = """\
Devices, groups, capabilities, host directories and direct ports give the box more than the
baseline. That is often right, but a person must have seen it."""
READS = ("security.audit_acknowledged", *_widening.READS)
BAD = """
[gpu]
backend = "ollama-rocm"
[security.exceptions.gpu-rocm]
"""
GOOD = """
[gpu]
backend = "ollama-rocm"
[security]
audit_acknowledged = true
[security.exceptions.gpu-rocm]
"""


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per exception or policy."""
    if context["security.audit_acknowledged"]:
        return
    for key, added, reason in _widening.find_widenings(context):
        yield context.finding(
            key,
            message=f"{added}{f', because {reason}' if reason else ''}",
            remedy="Set security.audit_acknowledged = true once you have read this.",
            related=("security.audit_acknowledged",),
        )
