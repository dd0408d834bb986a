"""E304: an agent that may do more than the one that starts it."""

from collections.abc import Iterator
from dataclasses import fields

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.agents._policies import bound_policy, enabled_agents
from agentbox.manifest.rules.context import View
from agentbox.manifest.tables.limits import Limits
from agentbox.manifest.types import Size
from agentbox.policy.patterns.scopes import SCOPES

_LIMITS = tuple(item.name for item in fields(Limits))
_LLM = ("max_tokens", "max_calls", "window_seconds", "max_concurrent")

CODE, SINCE = "E304", "0.1"
TITLE = "child wider than its parent"
WHY = """Starting another agent narrows: a right that the parent does not hold cannot come into being that way, or an
agent would only have to start the right child. The start would be refused."""
READS = (
    "agents",
    *(f"agents.*.{name}" for name in ("enabled", "children", "profile", "env", "secrets", "provider", "workspace")),
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
_SHOWN = 3


def check(view: View) -> Iterator[Finding]:
    """One finding a child, with its first differences."""
    if not view["agents.*.enabled"]:
        return
    for child in view["agents.*.children"]:
        if child not in enabled_agents(view):
            continue  # E301 says so
        wider = list(_wider(view, child))
        if wider:
            more = f" and {len(wider) - _SHOWN} more" if len(wider) > _SHOWN else ""
            yield view.finding(
                "agents.*.children",
                message=f"{child} may do more than {view.entry}: {'; '.join(wider[:_SHOWN])}{more}",
                remedy=f"Narrow agents.{child}, widen agents.{view.entry}, or drop {child} from its children.",
                related=(f"agents.{child}",),
            )


def _wider(view: View, child: str) -> Iterator[str]:
    mine, its = bound_policy(view, view.entry), bound_policy(view, child)
    if mine is not None and its is not None:
        yield from (str(grant) for grant in its.beyond(mine))
    own = f"agents.{child}"
    for name in view[f"{own}.secrets"]:
        if name not in view["agents.*.secrets"]:
            yield f"secret {name}"
    if (view[f"{own}.workspace"], view["agents.*.workspace"]) == ("direct", "branch"):
        yield "workspace direct"
    for name in _LIMITS:
        left, right = view[f"{own}.limits.{name}"], view[f"agents.*.limits.{name}"]
        if isinstance(left, tuple):
            yield from (f"limits.{name} {item}" for item in left if item not in right)
        elif _amount(name, left) > _amount(name, right):
            yield f"limits.{name} {left} over {right}"
    yield from _budget(view, own)


def _budget(view: View, own: str) -> Iterator[str]:
    """Tokens and calls per second of window, and calls in flight."""
    windows = view[f"{own}.llm.window_seconds"], view["agents.*.llm.window_seconds"]
    for name in ("max_tokens", "max_calls"):
        left, right = view[f"{own}.llm.{name}"], view[f"agents.*.llm.{name}"]
        if left * windows[1] > right * windows[0]:
            yield f"llm.{name} {left} in {windows[0]} s over {right} in {windows[1]} s"
    left, right = view[f"{own}.llm.max_concurrent"], view["agents.*.llm.max_concurrent"]
    if left > right:
        yield f"llm.max_concurrent {left} over {right}"


def _amount(name: str, value: Size | float) -> float:
    """0 means none for the one limit that has such a value, which is then the largest."""
    if name == "agent_wall_seconds" and value == 0:
        return float("inf")
    return value.bytes if isinstance(value, Size) else value
