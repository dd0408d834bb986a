"""What of a model budget is used and what is left, as `hello` and `GET /v1/agents/{id}` show it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentbox.core import clock
from agentbox.policy.rights.authorization import Authorization, Budget


@dataclass(frozen=True, kw_only=True)
class BudgetUsage:
    """Of one name, in the window that began at `since` (Unix seconds): calls, and tokens. `reserved` of the tokens are the
    worst cases of calls in flight."""

    since: float
    tokens: int
    calls: int
    reserved: int = 0

    def current(self, now: float, window: int) -> "BudgetUsage | None":
        """As it is at `now`: of a window that is over only what is in flight is left, in the next one; None = nothing."""
        if now < self.since + window:
            return self
        return (
            BudgetUsage(since=now, tokens=self.reserved, calls=0, reserved=self.reserved)
            if self.reserved
            else None
        )


def budget_line(authorization: Authorization) -> dict[str, Budget]:
    """The budgets that a call is used of, each name of [agents] once: the agent's own first, then its ancestors'. A program
    given ad hoc has one by its id. Empty without one of its own."""
    if authorization.budget is None:
        return {}
    budgets = {authorization.agent or authorization.agent_id: authorization.budget}
    for ancestor in authorization.ancestors:
        if ancestor.budget is not None:
            budgets.setdefault(ancestor.agent or ancestor.agent_id, ancestor.budget)
    return budgets


def usage_report(
    line: Mapping[str, Budget], usage_of: Callable[[str], BudgetUsage | None], now: float
) -> dict[str, Any]:
    """`{tokens: {cap, used, reserved, left}, calls: {cap, used, left}, window_seconds, resets_at}`; empty for an empty line.

    `cap` and `used` are of the agent's own name; `left` is the least in the line, its ancestors' included. `resets_at`
    (RFC 3339) is null while no window runs: the next call begins one.
    """
    if not line:
        return {}
    rows = [(budget, _current_usage(usage_of(name), budget, now)) for name, budget in line.items()]
    budget, current = rows[0]
    remaining = [
        (
            limit.max_tokens - (usage.tokens if usage else 0),
            limit.max_calls - (usage.calls if usage else 0),
        )
        for limit, usage in rows
    ]
    return {
        "tokens": {
            "cap": budget.max_tokens,
            "used": current.tokens if current else 0,
            "reserved": current.reserved if current else 0,
            "left": max(min(tokens for tokens, _ in remaining), 0),
        },
        "calls": {
            "cap": budget.max_calls,
            "used": current.calls if current else 0,
            "left": max(min(calls for _, calls in remaining), 0),
        },
        "window_seconds": budget.window_seconds,
        "resets_at": clock.to_wire(clock.from_unix(current.since + budget.window_seconds))
        if current
        else None,
    }


def _current_usage(usage: BudgetUsage | None, budget: Budget, now: float) -> BudgetUsage | None:
    return None if usage is None else usage.current(now, budget.window_seconds)
