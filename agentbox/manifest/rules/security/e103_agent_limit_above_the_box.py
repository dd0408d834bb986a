"""E103: an agent may use more than the box has."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.manifest.types import Size

CODE, SINCE = "E103", "0.1"
TITLE = "agent limit above the box"
WHY = """A limit above that of the box can never be granted: the agent would be refused or killed at the limit of the
box, and take others with it."""
READS = (
    "limits.memory",
    "limits.cpu",
    "limits.pids",
    "limits.fds",
    "limits.tmp",
    "agents",
    "agents.*.enabled",
    "agents.*.limits.memory",
    "agents.*.limits.cpu",
    "agents.*.limits.pids",
    "agents.*.limits.fds",
    "agents.*.limits.tmp",
    "resources.memory",
    "resources.cpus",
    "resources.pids",
    "resources.nofile",
    "resources.tmp_size",
)
BAD = """
[limits]
memory = "8GiB"
"""
GOOD = """
[limits]
memory = "2GiB"
"""
EACH = ("", "agents")


_PAIRS = (
    ("memory", "resources.memory"),
    ("cpu", "resources.cpus"),
    ("pids", "resources.pids"),
    ("fds", "resources.nofile"),
    ("tmp", "resources.tmp_size"),
)


def check(view: View) -> Iterator[Finding]:
    """One finding a pair, at the key that is written. An agent that writes no limit of its own is left out."""
    if view.table and not view["agents.*.enabled"]:
        return
    for name, whole in _PAIRS:
        limit = view.path(f"agents.*.limits.{name}" if view.table else f"limits.{name}")
        if _amount(view[limit]) > _amount(view[whole]) and (view.written(limit) or not view.table):
            at, other = (limit, whole) if view.written(limit) or not view.written(whole) else (whole, limit)
            yield view.finding(
                at,
                message=f"{limit} is {view[limit]} and {whole} is {view[whole]}: no agent can be granted more than the box has",
                remedy=f"Lower {limit} or raise {whole}.",
                related=(other,),
            )


def _amount(value: Size | float) -> float:
    return value.bytes if isinstance(value, Size) else value
