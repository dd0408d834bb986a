"""What an agent may ask of a provider, as far as no use is taken."""

from agentbox.gateway.llm.config import Provider
from agentbox.policy.patterns.names import NamePattern
from agentbox.policy.rights.rights import allowing
from agentbox.policy.rights.standing import Standing


def may(who: Standing, provider: Provider, model: str) -> bool:
    """Whether the agent's rights and those of all that it descends from allow the model, and the provider serves it."""
    everybody = (who.rights, *(one.rights for one in who.ancestors))
    value = f"{provider.name}/{model}"
    return provider.serves(model) and all(allowing(rights, "llm", "call", value) for rights in everybody)


def may_any(who: Standing, provider: Provider) -> bool:
    """Whether any model of that provider may be allowed."""
    every = NamePattern.parse("llm", provider.name)
    return any(
        right.scope == "llm" and right.mode == "allow" and NamePattern.parse("llm", text).overlaps(every)
        for right in who.rights
        for text in right.patterns
    )
