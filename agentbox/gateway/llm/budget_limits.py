"""What remains of the budgets of an agent and its ancestors, in tokens, calls and money."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.cost import ModelPrice, to_decimal
from agentbox.policy.rights.authorization import Budget
from agentbox.policy.rights.budget_usage import BudgetUsage

MIN_OUTPUT: Final = 16  # the smallest cap that all vendors accept
IN_FLIGHT_RETRY_SECONDS: Final = 2.0  # retry-after while calls in flight hold the remaining budget


@dataclass(slots=True)
class BudgetAccount:
    """`tokens`, `calls` and `cost` (micro-units) of the window that began at `since` (Unix
    seconds), including reservations."""

    name: str
    since: float
    tokens: int = 0
    calls: int = 0
    cost: int = 0
    reserved: int = 0  # part of the tokens: worst cases of calls in flight
    reserved_cost: int = 0  # the same part of the cost
    budget: Budget | None = None  # of the latest call

    def roll(self, now: float, window: int) -> None:
        """Starts a new window if the current one has expired; calls in flight count in the new
        one."""
        if now >= self.since + window:
            self.since, self.calls = now, 0
            self.tokens, self.cost = self.reserved, self.reserved_cost

    def usage(self) -> BudgetUsage:
        """As it is shown."""
        return BudgetUsage(
            since=self.since,
            tokens=self.tokens,
            calls=self.calls,
            reserved=self.reserved,
            cost=self.cost,
            reserved_cost=self.reserved_cost,
        )


class Remaining(NamedTuple):
    """`tokens` of both directions; `output`: the output tokens that the remaining money pays for,
    None = any number."""

    tokens: int
    output: int | None


def remaining(
    chain: Iterable[tuple[BudgetAccount, Budget]],
    now: float,
    input_tokens: int,
    choices: int,
    price: ModelPrice | None,
    max_input: int,
) -> Remaining:
    """The minimum over the chain. `input_tokens` is the estimate that counts in tokens, `max_input`
    the bound that counts in money. Raises ModelGatewayError."""
    tokens, output = 1 << 62, None
    for account, budget in chain:
        account.roll(now, budget.window_seconds)
        reset = max(account.since + budget.window_seconds - now, 1.0)
        if account.calls >= budget.max_calls:
            raise _budget_exceeded(
                account, "calls", f"all {budget.max_calls} calls of this window are used", reset
            )
        tokens = min(tokens, _tokens(account, budget, input_tokens + choices * MIN_OUTPUT, reset))
        if price is not None and budget.max_cost is not None:
            micros = _micros(account, budget.max_cost, price, max_input, choices, reset)
            affordable = price.affordable_output(max_input, micros)
            if affordable is not None:
                output = affordable if output is None else min(output, affordable)
    return Remaining(tokens, output)


def _tokens(account: BudgetAccount, budget: Budget, needed: int, reset: float) -> int:
    available = budget.max_tokens - account.tokens
    if available < needed:
        used = account.tokens - account.reserved
        if budget.max_tokens - used >= needed:
            raise _budget_exceeded(
                account,
                "tokens",
                "the remaining tokens are reserved by calls in flight",
                IN_FLIGHT_RETRY_SECONDS,
            )
        message = (
            f"{max(budget.max_tokens - used, 0)} of {budget.max_tokens} tokens remain,"
            f" this call needs {needed}"
        )
        raise _budget_exceeded(account, "tokens", message, reset)
    return available


def _micros(
    account: BudgetAccount,
    cap: int,
    price: ModelPrice,
    max_input: int,
    choices: int,
    reset: float,
) -> int:
    needed = price.worst_cost(max_input, choices * MIN_OUTPUT)
    available = cap - account.cost
    if available < needed:
        used = account.cost - account.reserved_cost
        if cap - used >= needed:
            raise _budget_exceeded(
                account,
                "cost",
                "the remaining money is reserved by calls in flight",
                IN_FLIGHT_RETRY_SECONDS,
            )
        message = (
            f"{to_decimal(max(cap - used, 0))} of {to_decimal(cap)} remain,"
            f" this call may cost {to_decimal(needed)}"
        )
        raise _budget_exceeded(account, "cost", message, reset)
    return available


def _budget_exceeded(
    account: BudgetAccount, resource: str, message: str, reset: float
) -> ModelGatewayError:
    return ModelGatewayError(
        "budget",
        f"over the model budget of {account.name}: {message}; try again in {reset:.0f} s",
        rule=f"budget:{resource}",
        detail=account.name,
        retry_after=reset,
    )
