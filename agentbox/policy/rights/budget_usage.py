"""Usage and remainder of a model budget, as shown by `hello` and `GET /v1/agents/{id}`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentbox.core import clock
from agentbox.policy.rights.authorization import Authorization, Budget


@dataclass(frozen=True, kw_only=True)
class BudgetUsage:
    """Usage of one name in the window that began at `since` (Unix seconds): calls and tokens.
    `reserved` tokens are the maximum of calls in flight.
    """

    since: float
    tokens: int
    calls: int
    reserved: int = 0

    def current(self, now: float, window: int) -> "BudgetUsage | None":
        """The usage at `now`: after the end of the window only calls in flight remain, in the next
        window; None = nothing.
        """
        if now < self.since + window:
            return self
        return (
            BudgetUsage(since=now, tokens=self.reserved, calls=0, reserved=self.reserved)
            if self.reserved
            else None
        )


def budget_line(authorization: Authorization) -> dict[str, Budget]:
    """The budgets that a call counts against, each name of [agents] once: the agent's own first,
    then its ancestors'. An ad hoc program is keyed by its id. Empty without an own budget.
    """
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
    """`{tokens: {cap, used, reserved, left}, calls: {cap, used, left}, window_seconds, resets_at}`;
    empty without a budget. `cap` and `used` are the agent's own; `left` is the minimum over its
    ancestors too. `resets_at` (RFC 3339) is null while no window is open: the next call opens one.
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
