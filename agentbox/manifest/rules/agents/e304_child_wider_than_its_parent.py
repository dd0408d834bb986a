"""E304: an agent with more rights than its parent."""

from collections.abc import Iterator
from dataclasses import fields

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import agent_policy, enabled_agents
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.tables.limits import LimitsTable
from agentbox.policy.patterns.scopes import SCOPES

_LIMITS = tuple(item.name for item in fields(LimitsTable))
_LLM = ("max_tokens", "max_calls", "window_seconds", "max_concurrent", "max_cost")

CODE, SINCE = "E304", "0.1"
TITLE = "child wider than its parent"
REASON = """A child has at most the rights of its parent: otherwise an agent could gain rights by
starting a child. The start would be denied."""
READS = (
    "agents",
    *(
        f"agents.*.{name}"
        for name in (
            *("enabled", "children", "profile", "env", "secrets", "provider", "workspace", "mcp"),
        )
    ),
    "agents.*.workspace_dir",
    *(f"agents.*.limits.{name}" for name in _LIMITS),
    *(f"agents.*.llm.{name}" for name in _LLM),
    "egress.allow",
    "policies",
    "policies.*.base",
    *(f"policies.*.{scope}" for scope in SCOPES),
)
BAD = """
[agents.reviewer]
command = ["reviewer"]
profile = "readonly"
children = ["builder"]
[agents.builder]
command = ["builder"]
profile = "standard"
"""
GOOD = """
[agents.builder]
command = ["builder"]
profile = "standard"
children = ["reviewer"]
[agents.reviewer]
command = ["reviewer"]
profile = "readonly"
"""
EACH = "agents"
_MAX_LISTED = 3


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per child, with its first differences."""
    if not context["agents.*.enabled"]:
        return
    for child in context["agents.*.children"]:
        if child not in enabled_agents(context):
            continue  # reported by E301
        excess = list(_excess(context, child))
        if excess:
            more = f" and {len(excess) - _MAX_LISTED} more" if len(excess) > _MAX_LISTED else ""
            yield context.finding(
                "agents.*.children",
                message=f"{child} may do more than {context.entry}: "
                f"{'; '.join(excess[:_MAX_LISTED])}{more}",
                remedy=f"Narrow agents.{child}, widen agents.{context.entry}, or drop {child} from "
                "its children.",
                related=(f"agents.{child}",),
            )


def _excess(context: RuleContext, child: str) -> Iterator[str]:
    parent_policy, child_policy = agent_policy(context, context.entry), agent_policy(context, child)
    if parent_policy is not None and child_policy is not None:
        yield from (
            str(permission) for permission in child_policy.permissions_beyond(parent_policy)
        )
    child_key = f"agents.{child}"
    for name in context[f"{child_key}.secrets"]:
        if name not in context["agents.*.secrets"]:
            yield f"secret {name}"
    if (context[f"{child_key}.workspace"], context["agents.*.workspace"]) == ("direct", "branch"):
        yield "workspace direct"
    for name in _LIMITS:
        value, bound = context[f"{child_key}.limits.{name}"], context[f"agents.*.limits.{name}"]
        if isinstance(value, tuple):
            yield from (f"limits.{name} {item}" for item in value if item not in bound)
        elif _amount(name, value) > _amount(name, bound):
            yield f"limits.{name} {value} over {bound}"
    yield from _budget(context, child_key)


def _budget(context: RuleContext, child_key: str) -> Iterator[str]:
    """Tokens, calls and money per second of the window, and concurrent calls. A child without a
    bound in money has that of its parent."""
    windows = context[f"{child_key}.llm.window_seconds"], context["agents.*.llm.window_seconds"]
    for name in ("max_tokens", "max_calls"):
        value, bound = context[f"{child_key}.llm.{name}"], context[f"agents.*.llm.{name}"]
        if value * windows[1] > bound * windows[0]:
            yield f"llm.{name} {value} in {windows[0]} s over {bound} in {windows[1]} s"
    cost, cap = context[f"{child_key}.llm.max_cost"], context["agents.*.llm.max_cost"]
    if cost and cap:
        from agentbox.policy.cost import to_micros  # most manifests have no budget in money

        if to_micros(cost) * windows[1] > to_micros(cap) * windows[0]:
            yield f"llm.max_cost {cost} in {windows[0]} s over {cap} in {windows[1]} s"
    value, bound = (
        context[f"{child_key}.llm.max_concurrent"],
        context["agents.*.llm.max_concurrent"],
    )
    if value > bound:
        yield f"llm.max_concurrent {value} over {bound}"


def _amount(name: str, value: float) -> float:
    """For the one limit where 0 means unlimited, 0 is the largest value."""
    if name == "agent_wall_seconds" and value == 0:
        return float("inf")
    return value
