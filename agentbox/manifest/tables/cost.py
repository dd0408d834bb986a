"""[cost]: how calls of models are counted in money."""

from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range
from agentbox.manifest.declarations.key import key
from agentbox.manifest.named_types import Currency


@frozen
class CostTable:
    """Cost of model calls. Prices are in `[providers.<name>.prices]`, budgets in
    `agents.<name>.llm.max_cost`.
    """

    currency: Currency = key("USD", "boot", doc="Currency of all prices and budgets.")
    unknown: Literal["refuse", "count"] = key(
        "refuse",
        "live",
        doc="Calls without a price of agents with a budget in money: refuse them, or count their "
        "tokens only.",
    )
    keep_days: Annotated[int, Range(1, 3650)] = key(
        400, "live", doc="How long the record of a call is kept.", unit="days"
    )
