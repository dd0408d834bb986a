"""The named types of amounts of money. Standard library only: the boot imports this."""

from typing import Annotated

from agentbox.manifest.declarations.constraints import Pattern, TypeInfo

_MONEY = r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?"

Money = Annotated[
    str,
    TypeInfo(
        "money",
        "An amount of the currency of [cost], as text: digits, at most six of them after a point.",
        "an amount as text",
        '"2.50"',
    ),
    Pattern(f"^{_MONEY}$"),
]
MoneyOrNone = Annotated[
    str,
    TypeInfo(
        "money_or_none",
        'An amount of the currency of [cost], as text; "" for none.',
        "an amount as text",
        '"20"',
    ),
    Pattern(f"^$|^{_MONEY}$"),
]
Currency = Annotated[
    str,
    TypeInfo("currency", "The three capital letters of a currency.", "a currency", '"EUR"'),
    Pattern("^[A-Z]{3}$"),
]
