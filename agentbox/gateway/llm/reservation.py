"""One call in the budgets: its worst case before it, what it used after it."""

from dataclasses import dataclass, field

from agentbox.core.frozen import frozen_slots
from agentbox.core.ids import uuid7
from agentbox.gateway.llm.budget_limits import BudgetAccount
from agentbox.gateway.llm.call_record import ModelCall
from agentbox.policy.cost import ModelPrice, TokenCounts
from agentbox.policy.rights.authorization import Authorization


@frozen_slots
class CallSubject:
    """What a call is for, and what it costs. `max_input`: the largest possible number of input
    tokens, for money; `price` None: no price matches; `is_billable`: it uses tokens."""

    provider: str = ""
    model: str = ""
    currency: str = ""
    price: ModelPrice | None = None
    max_input: int = 0
    is_billable: bool = True


@frozen_slots
class Settlement:
    """What a call used. `cost` in micro-units, None without a price."""

    tokens: TokenCounts = field(default_factory=TokenCounts)
    cost: int | None = 0
    estimated: bool = False


@dataclass(slots=True)
class Reservation:
    """The worst case of one call. `output`: maximum output tokens of all its choices together;
    `cost` in micro-units, 0 without a price."""

    accounts: tuple[BudgetAccount, ...]
    tokens: int
    output: int
    cost: int
    call: ModelCall
    open: bool = field(default=True)


def new_call(
    caller: Authorization,
    subject: CallSubject,
    tokens: TokenCounts,
    cost: int,
    accounts: tuple[BudgetAccount, ...],
    now: float,
) -> ModelCall:
    """The row of a call in flight: its worst case. The session of an agent without a task is
    the root of its family."""
    root = caller.ancestors[-1].agent_id if caller.ancestors else caller.agent_id
    price = subject.price
    return ModelCall(
        call_id=uuid7(),
        at=now,
        agent=caller.agent or caller.agent_id,
        agent_id=caller.agent_id,
        generation=caller.generation,
        session_id=caller.session_id,
        task="" if caller.session_id == root else caller.session_id,
        provider=subject.provider,
        model=subject.model,
        tokens=tokens,
        currency=subject.currency,
        cost=None if price is None else cost,
        pattern="" if price is None else price.pattern,
        price="" if price is None else price.digest,
        estimated=True,
        accounts=" ".join(account.name for account in accounts),
    )
