"""Prices and costs of model calls, in integers.

Amounts are integer micro-units of the currency in `[cost]` (a millionth of a dollar). A price for a
million tokens is therefore the number of micro-units for one token; it is kept in millionths of
them, so that six digits after the point are exact. The cost of a call is rounded up, once.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Protocol

from agentbox.core.canonical import canonical_json, digest
from agentbox.core.frozen import frozen_slots
from agentbox.policy.patterns import globs

MICRO: Final = 1_000_000
"""Micro-units of one unit of the currency; also the parts of a micro-unit that prices count."""


def to_micros(text: str) -> int:
    """`"2.50"` -> 2500000. The text has at most six digits after the point."""
    return int(Decimal(text) * MICRO)


def to_decimal(micros: int) -> str:
    """2500000 -> `"2.50"`: at least two digits after the point."""
    whole, part = divmod(micros, MICRO)
    digits = f"{part:06}".rstrip("0").ljust(2, "0")
    return f"{whole}.{digits}"


class PriceTexts(Protocol):
    """Prices for a million tokens as decimal text; "" of the last two = that of input."""

    @property
    def input(self) -> str: ...
    @property
    def output(self) -> str: ...
    @property
    def cache_read(self) -> str: ...
    @property
    def cache_write(self) -> str: ...


@frozen_slots
class TokenCounts:
    """Tokens of one call. `input` includes those that were read from or written to the cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input + self.output


@frozen_slots
class ModelPrice:
    """Prices of one token in millionths of a micro-unit. `pattern` is that of the manifest;
    `digest` identifies pattern, currency and prices in the record of a call.
    """

    pattern: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    digest: str

    @classmethod
    def parse(cls, pattern: str, texts: PriceTexts, currency: str) -> "ModelPrice":
        """From the texts of the manifest."""
        prices = {
            "input": to_micros(texts.input),
            "output": to_micros(texts.output),
            "cache_read": to_micros(texts.cache_read or texts.input),
            "cache_write": to_micros(texts.cache_write or texts.input),
        }
        identity: dict[str, Any] = {"currency": currency, "pattern": pattern, **prices}
        return cls(pattern=pattern, **prices, digest=digest(canonical_json(identity)))

    def cost(self, tokens: TokenCounts) -> int:
        """The cost of a call in micro-units, rounded up. Tokens of the cache are limited to the
        input."""
        read = min(tokens.cache_read, tokens.input)
        written = min(tokens.cache_write, tokens.input - read)
        parts = (
            (tokens.input - read - written) * self.input
            + read * self.cache_read
            + written * self.cache_write
            + tokens.output * self.output
        )
        return -(-parts // MICRO)

    def worst_cost(self, input_tokens: int, output_tokens: int) -> int:
        """The largest possible cost of a call with that many tokens at most."""
        parts = input_tokens * self.worst_input + output_tokens * self.output
        return -(-parts // MICRO)

    def affordable_output(self, input_tokens: int, micros: int) -> int | None:
        """The output tokens that `micros` pay for after the worst case of the input; None = any
        number, negative if the input alone costs more."""
        remaining = micros * MICRO - input_tokens * self.worst_input
        if remaining < 0:
            return -1
        return None if self.output == 0 else remaining // self.output

    @property
    def worst_input(self) -> int:
        """The highest price of an input token."""
        return max(self.input, self.cache_read, self.cache_write)


def find_price(prices: Mapping[str, ModelPrice], model: str) -> ModelPrice | None:
    """The price of a model: that of its own name, else of the longest pattern that matches; of
    equally long ones, the first in order of text. None if none matches."""
    if (exact := prices.get(model)) is not None:
        return exact
    matching = [pattern for pattern in prices if globs.matches(pattern, model)]
    return prices[min(matching, key=lambda text: (-len(text), text))] if matching else None
