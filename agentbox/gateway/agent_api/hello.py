"""What an agent is told of itself: who it is, what it may do, and what it may use up."""

import time
from collections.abc import Callable
from typing import Any, Final

from agentbox.core.records.plain import plain
from agentbox.gateway.agent_api.tools import AGENTS, TOOLS
from agentbox.policy.rights.spent import Spent, line_of, use_of
from agentbox.policy.rights.standing import Standing

CONTRACT_VERSION: Final = "1.1.0"
_OWN: Final = ("hello", "tool.list", "tool.invoke", "secret.get", "approval.request", "identity.sign")
METHODS: Final = (*_OWN, *(tool.method for tool in (*TOOLS, *AGENTS)))


def hello(who: Standing, spent: Callable[[str], Spent | None]) -> dict[str, Any]:
    """`spent`: what a name has used of models. Never a token, and never its hash."""
    return {
        "contracts": {"door": CONTRACT_VERSION},
        "agent": {"id": who.agent_id, "generation": who.generation, "name": who.name, "parent_id": who.parent_id, "principal": who.principal},
        "policy": {
            "profile": who.profile, "rights": [plain(right) for right in who.rights],
            "approval_required": list(who.approval_required), "children": list(who.children), "secrets": list(who.secrets),
        },
        "budgets": {
            "provider": who.provider, "llm": None if who.budget is None else plain(who.budget),
            "use": use_of(line_of(who), spent, time.time()), "limits": dict(who.limits),
        },
        "state": who.state,
        "own": {
            "pods": f"state/{who.state}/", "memory": f"state.{who.state}", "beads": f"for:{who.agent}" if who.agent else "",
            "events": who.principal,
        },
        "methods": METHODS,
    }  # fmt: skip
