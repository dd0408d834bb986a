"""Configuration of the model gateway, from the plan: providers, keys, redaction."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, Self

from agentbox.box.supervision.secrets import read_secret
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import GATEWAY
from agentbox.plan.tables import CostPlan
from agentbox.policy.cost import ModelPrice
from agentbox.policy.outgoing import DIRECT, Outgoing
from agentbox.policy.patterns import globs
from agentbox.policy.redaction.redactor import Redactor, build_redactor

# The public endpoints of the vendors' API references, used if `base_url` is "". SDKs append paths
# to their base URL, so OpenAI's ends in /v1 and the others do not.
ENDPOINTS: Final[Mapping[str, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}


@frozen
class Provider:
    """An enabled `[providers.<name>]`. `base_url` is never "" and has no trailing slash."""

    name: str
    kind: str
    base_url: str
    env_var: str
    models: tuple[str, ...]
    max_concurrent: int
    timeout_seconds: int
    currency: str = ""
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)  # by pattern of models

    def serves(self, model: str) -> bool:
        """Whether `models` matches the model."""
        return any(globs.matches(glob, model) for glob in self.models)


@frozen
class LlmConfig:
    """`key` returns a secret by name, None if it is unset; it is read for each call, so a changed
    key applies to the next one. `state_dir` holds the budgets."""

    providers: Mapping[str, Provider]
    key: Callable[[str], str | None]
    state_dir: Path
    redactor: Redactor
    cost: CostPlan
    outgoing: Outgoing = DIRECT

    @classmethod
    def from_plan(cls, plan: Plan, paths: Paths) -> Self:
        """The configuration of the box at these paths. Raises AgentboxError for an unsupported
        privacy mode."""

        def key(name: str) -> str | None:
            secret = read_secret(paths, name)
            return secret[0] if secret else None

        return cls(
            providers=_providers(plan),
            key=key,
            state_dir=paths.slot(GATEWAY),
            redactor=build_redactor(plan.privacy),
            cost=plan.cost,
            outgoing=Outgoing.read(paths),
        )


def _providers(plan: Plan) -> dict[str, Provider]:
    return {
        name: Provider(
            name=name,
            kind=provider.kind,
            base_url=(provider.base_url or ENDPOINTS[provider.kind]).rstrip("/"),
            env_var=provider.env_var,
            models=provider.models,
            max_concurrent=provider.max_concurrent,
            timeout_seconds=provider.timeout_seconds,
            currency=plan.cost.currency,
            prices={
                pattern: ModelPrice.parse(pattern, texts, plan.cost.currency)
                for pattern, texts in provider.prices.items()
            },
        )
        for name, provider in plan.providers.items()
        if provider.enabled
    }
