"""E103: an agent may use more than the box has."""

from collections.abc import Iterator

from agentbox.manifest import Finding, Size
from agentbox.rules.view import View

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


_PAIRS = (
    ("limits.memory", "resources.memory"),
    ("limits.cpu", "resources.cpus"),
    ("limits.pids", "resources.pids"),
    ("limits.fds", "resources.nofile"),
    ("limits.tmp", "resources.tmp_size"),
)


def check(view: View) -> Iterator[Finding]:
    """One finding a pair, at the key that is written."""
    for limit, whole in _PAIRS:
        asked, there = view[limit], view[whole]
        if _amount(asked) > _amount(there):
            at, other = (limit, whole) if view.written(limit) or not view.written(whole) else (whole, limit)
            yield view.finding(
                at,
                message=f"{limit} is {asked} and {whole} is {there}: an agent cannot be granted more than the box has",
                remedy=f"Lower {limit} or raise {whole}.",
                related=(other,),
            )


def _amount(value: Size | float) -> float:
    return value.bytes if isinstance(value, Size) else value
