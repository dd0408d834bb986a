"""E102: the box has less memory than what is on needs."""

from collections.abc import Iterator

from agentbox.manifest.features.exceptions import active, effective_delta
from agentbox.manifest.features.tmpfs import baseline, total_bytes
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, View

CODE, SINCE = "E102", "0.1"
TITLE = "box smaller than what is on"
WHY = """Pages of memory file systems count in the memory of the box. When the sum does not fit, the kernel kills
programs as soon as the file systems fill."""
READS = ("resources.memory", "resources.tmp_size", "resources.log_size", "security.exceptions", *GATES)
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


def check(view: View) -> Iterator[Finding]:
    """At most one finding, with the sum."""
    memory = view["resources.memory"]
    mounts = baseline(view["resources.tmp_size"], view["resources.log_size"])
    parts = [("control plane", _CONTROL_PLANE), ("memory file systems", total_bytes(mounts))]
    parts += [(name, need.bytes) for name in view.on if (need := view.features[name].min_memory) is not None]
    written = view.names("security.exceptions")
    for key in (key for key in active(view.model, view.features, view.on) if key in written):
        parts.append((f"exception {key}", total_bytes(effective_delta(view.model, key).tmpfs)))
    needed = sum(size for _, size in parts)
    if needed > memory.bytes:
        listed = " + ".join(f"{name} {size // _MIB} MiB" for name, size in parts)
        yield view.finding(
            "resources.memory",
            message=f"{listed} = {-(-needed // _MIB)} MiB do not fit in {memory}",
            remedy=f'Set resources.memory to at least "{-(-needed // _MIB)}MiB", or turn something off.',
        )
