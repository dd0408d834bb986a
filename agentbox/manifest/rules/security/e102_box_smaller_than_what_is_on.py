"""E102: the box has less memory than its features need."""

from collections.abc import Iterator

from agentbox.manifest.features.security_exceptions import active_keys, effective_delta
from agentbox.manifest.features.tmpfs import baseline_mounts, total_bytes
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext

CODE, SINCE = "E102", "0.1"
TITLE = "box smaller than what is on"
REASON = """\
Pages of memory file systems count against the memory of the box. If the sum does not fit,
the kernel kills programs when the file systems fill up."""
READS = (
    "resources.memory",
    "resources.tmp_size",
    "resources.log_size",
    "security.exceptions",
    *GATES,
)
BAD = """
[resources]
memory = "1GiB"
[limits]
memory = "512MiB"
"""
GOOD = """
[resources]
memory = "2GiB"
[limits]
memory = "512MiB"
"""


_MIB = 1 << 20
_CONTROL_PLANE = 256 * _MIB


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, with the sum."""
    memory = context["resources.memory"]
    mounts = baseline_mounts(context["resources.tmp_size"], context["resources.log_size"])
    parts = [("control plane", _CONTROL_PLANE), ("memory file systems", total_bytes(mounts))]
    parts += [
        (name, need)
        for name in context.enabled_features
        if (need := context.features[name].min_memory) is not None
    ]
    written = context.names("security.exceptions")
    for key in (
        key
        for key in active_keys(context.model, context.features, context.enabled_features)
        if key in written
    ):
        parts.append((f"exception {key}", total_bytes(effective_delta(context.model, key).tmpfs)))
    required = sum(size for _, size in parts)
    if required > memory:
        listed = " + ".join(f"{name} {size // _MIB} MiB" for name, size in parts)
        yield context.finding(
            "resources.memory",
            message=f"{listed} = {-(-required // _MIB)} MiB do not fit in {memory}",
            remedy=f'Set resources.memory to at least "{-(-required // _MIB)}MiB", or disable '
            "a feature.",
        )
