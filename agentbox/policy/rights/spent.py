"""What of a model budget is used and what is left, as `hello` and `GET /v1/agents/{id}` show it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentbox.core import clock
from agentbox.policy.rights.standing import Budget, Standing


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Of one name, in the window that began at `since` (Unix seconds): calls, and tokens. `reserved` of the tokens are the
    worst cases of calls in flight."""

    since: float
    tokens: int
    calls: int
    reserved: int = 0

    def at(self, now: float, window: int) -> "Spent | None":
        """As it is at `now`: of a window that is over only what is in flight is left, in the next one; None = nothing."""
        if now < self.since + window:
            return self
        return Spent(since=now, tokens=self.reserved, calls=0, reserved=self.reserved) if self.reserved else None


def line_of(who: Standing) -> dict[str, Budget]:
    """The budgets that a call is used of, each name of [agents] once: the agent's own first, then its ancestors'. A program
    given ad hoc has one by its id. Empty without one of its own."""
    if who.budget is None:
        return {}
    found = {who.agent or who.agent_id: who.budget}
    for one in who.ancestors:
        if one.budget is not None:
            found.setdefault(one.agent or one.agent_id, one.budget)
    return found


def use_of(line: Mapping[str, Budget], spent: Callable[[str], Spent | None], now: float) -> dict[str, Any]:
    """`{tokens: {cap, used, reserved, left}, calls: {cap, used, left}, window_seconds, resets_at}`; empty for an empty line.

    `cap` and `used` are of the agent's own name; `left` is the least in the line, its ancestors' included. `resets_at`
    (RFC 3339) is null while no window runs: the next call begins one.
    """
    if not line:
        return {}
    rows = [(budget, _at(spent(name), budget, now)) for name, budget in line.items()]
    budget, own = rows[0]
    left = [(one.max_tokens - (used.tokens if used else 0), one.max_calls - (used.calls if used else 0)) for one, used in rows]  # fmt: skip
    return {
        "tokens": {
            "cap": budget.max_tokens, "used": own.tokens if own else 0, "reserved": own.reserved if own else 0,
            "left": max(min(tokens for tokens, _ in left), 0),
        },
        "calls": {"cap": budget.max_calls, "used": own.calls if own else 0, "left": max(min(calls for _, calls in left), 0)},
        "window_seconds": budget.window_seconds,
        "resets_at": clock.to_wire(clock.at(own.since + budget.window_seconds)) if own else None,
    }  # fmt: skip


def _at(spent: Spent | None, budget: Budget, now: float) -> Spent | None:
    return None if spent is None else spent.at(now, budget.window_seconds)
