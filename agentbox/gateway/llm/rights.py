"""Checks of model rights that consume no use."""

from agentbox.gateway.llm.config import Provider
from agentbox.policy.patterns.names import NamePattern
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.rights import find_allowing_right


def may_use_model(caller: Authorization, provider: Provider, model: str) -> bool:
    """Whether the provider serves the model and the rights of the agent and all its ancestors allow
    it."""
    all_rights = (caller.rights, *(ancestor.rights for ancestor in caller.ancestors))
    value = f"{provider.name}/{model}"
    return provider.serves(model) and all(
        find_allowing_right(rights, "llm", "call", value) for rights in all_rights
    )


def may_use_any_model(caller: Authorization, provider: Provider) -> bool:
    """Whether any model of the provider may be allowed."""
    any_model = NamePattern.parse("llm", provider.name)
    return any(
        right.scope == "llm"
        and right.mode == "allow"
        and NamePattern.parse("llm", text).overlaps(any_model)
        for right in caller.rights
        for text in right.patterns
    )
