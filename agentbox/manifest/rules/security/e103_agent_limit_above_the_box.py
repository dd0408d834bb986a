"""E103: an agent limit above that of the box."""

from collections.abc import Iterator

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext

CODE, SINCE = "E103", "0.1"
TITLE = "agent limit above the box"
REASON = """A limit above that of the box has no effect: the agent would be denied or killed at the
limit of the box, possibly with others."""
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


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per pair, at the key that is written. Agents without their own limit
    are omitted.
    """
    if context.table and not context["agents.*.enabled"]:
        return
    for name, box_key in _PAIRS:
        limit = context.path(f"agents.*.limits.{name}" if context.table else f"limits.{name}")
        if context[limit] > context[box_key] and (context.is_written(limit) or not context.table):
            reported_key, other = (
                (limit, box_key)
                if context.is_written(limit) or not context.is_written(box_key)
                else (box_key, limit)
            )
            yield context.finding(
                reported_key,
                message=f"{limit} is {context[limit]} and {box_key} is {context[box_key]}: no "
                "agent can be granted more than the box has",
                remedy=f"Lower {limit} or raise {box_key}.",
                related=(other,),
            )
