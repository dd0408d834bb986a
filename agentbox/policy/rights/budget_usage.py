"""Usage and remainder of a model budget, as shown by `hello` and `GET /v1/agents/{id}`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentbox.core import clock
from agentbox.core.frozen import frozen
from agentbox.policy.rights.authorization import Authorization, Budget


@frozen
class BudgetUsage:
    """Usage of one name in the window that began at `since` (Unix seconds): calls, tokens and cost
    in micro-units. `reserved` tokens and `reserved_cost` are the maximum of calls in flight.
    """

    since: float
    tokens: int
    calls: int
    reserved: int = 0
    cost: int = 0
    reserved_cost: int = 0

    def current(self, now: float, window: int) -> "BudgetUsage | None":
        """The usage at `now`: after the end of the window only calls in flight remain, in the next
        window; None = nothing.
        """
        if now < self.since + window:
            return self
        return (
            BudgetUsage(
                since=now,
                tokens=self.reserved,
                calls=0,
                reserved=self.reserved,
                cost=self.reserved_cost,
                reserved_cost=self.reserved_cost,
            )
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


def has_money_budget(authorization: Authorization) -> bool:
    """Whether a call counts against a budget in money."""
    return any(budget.max_cost is not None for budget in budget_line(authorization).values())


def usage_report(
    line: Mapping[str, Budget], usage_of: Callable[[str], BudgetUsage | None], now: float
) -> dict[str, Any]:
    """`{tokens: {cap, used, reserved, left}, calls: {cap, used, left}, cost: {cap, used, reserved,
    left}, window_seconds, resets_at}`; empty without a budget. `cap` and `used` are the agent's
    own; `left` is the minimum over its ancestors too. `cost`, in micro-units, is absent unless one
    of them has a budget in money; its `cap` is null if only an ancestor has one. `resets_at` (RFC
    3339) is null while no window is open: the next call opens one.
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
        **_cost_report(rows),
        "window_seconds": budget.window_seconds,
        "resets_at": clock.to_wire(clock.from_unix(current.since + budget.window_seconds))
        if current
        else None,
    }


def _cost_report(rows: Sequence[tuple[Budget, BudgetUsage | None]]) -> dict[str, Any]:
    budget, current = rows[0]
    remaining = [
        limit.max_cost - (usage.cost if usage else 0)
        for limit, usage in rows
        if limit.max_cost is not None
    ]
    if not remaining:
        return {}
    return {
        "cost": {
            "cap": budget.max_cost,
            "used": current.cost if current else 0,
            "reserved": current.reserved_cost if current else 0,
            "left": max(min(remaining), 0),
        }
    }


def _current_usage(usage: BudgetUsage | None, budget: Budget, now: float) -> BudgetUsage | None:
    return None if usage is None else usage.current(now, budget.window_seconds)
