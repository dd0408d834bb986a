"""[providers.<name>]: model endpoints. Only the gateway reads the credentials."""

from collections.abc import Mapping
from typing import Annotated, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Range, Unique
from agentbox.manifest.declarations.key import ENABLED, entries, key
from agentbox.manifest.named_types import Money, MoneyOrNone
from agentbox.manifest.types import Env, Glob, HttpUrl


@frozen
class ModelPriceTable:
    """Prices of the models that the pattern matches, for a million tokens, in the currency of
    `[cost]`. Of several patterns that match a model, the longest counts.
    """

    input: Money = key("0", "live", required=True, doc="Input that is not cached.")
    output: Money = key("0", "live", required=True, doc="Output, thinking included.")
    cache_read: MoneyOrNone = key(
        "", "live", doc='Input that was read from the cache of the provider; "" = as `input`.'
    )
    cache_write: MoneyOrNone = key(
        "", "live", doc='Input that was written to the cache; "" = as `input`.'
    )


@frozen
class ProviderTable:
    """One model endpoint."""

    enabled: bool = key(False, "boot", doc="Agents may use it.")
    kind: Literal["openai", "anthropic", "gemini"] = key(
        "openai",
        "boot",
        doc="Wire protocol; a local model server that speaks it counts.",
        when=ENABLED,
    )
    base_url: HttpUrl = key(
        "",
        "boot",
        doc='The endpoint, private addresses included; "" = the vendor\'s public one of that kind.',
        when=ENABLED,
    )
    env_var: Env = key(
        "", "recreate", required=True, doc='Variable that holds the credential; "" = needs none.'
    )
    models: Annotated[tuple[Glob, ...], Unique()] = key(
        ("*",), "live", doc="Models that the gateway forwards.", when=ENABLED
    )
    max_concurrent: Annotated[int, Range(1, 256)] = key(
        4, "live", doc="Calls in flight.", unit="calls", when=ENABLED
    )
    timeout_seconds: Annotated[int, Range(5, 3600)] = key(
        600, "live", doc="One call.", when=ENABLED
    )
    prices: Mapping[Glob, ModelPriceTable] = entries(
        "Prices by model. `agentbox prices update` writes them.", when=ENABLED
    )
