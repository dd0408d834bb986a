"""Which actions of an agent require an approval, by its `approval_required`."""

from collections.abc import Mapping
from typing import Final

from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.scopes import Scope, parse
from agentbox.policy.rights.authorization import Authorization

_SCOPES: Final[Mapping[str, Scope]] = {
    "tool": "tool",
    "spawn": "agent",
    "host": "net",
}  # scope of each kind's patterns


def is_approval_required(caller: Authorization, kind: str, value: str) -> bool:
    """Whether the action requires an approval. `kind`: tool, host or spawn; `value` as in
    `Policy.decide`."""
    scope = _SCOPES.get(kind)
    texts = [
        text.partition(":")[2] for text in caller.approval_required if text.startswith(f"{kind}:")
    ]
    try:
        return scope is not None and any(parse(scope, text).matches(value) for text in texts)
    except PatternError:  # the value is invalid in this scope
        return False
