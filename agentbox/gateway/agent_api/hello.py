"""What an agent can learn about itself: identity, rights and budgets."""

import time
from collections.abc import Callable
from typing import Any, Final

from agentbox.core.records.plain import to_plain
from agentbox.gateway.agent_api.tools import AGENT_TOOLS, TOOLS
from agentbox.plan.skill_catalogue import SkillCatalogue
from agentbox.policy.rights.authorization import Authorization
from agentbox.policy.rights.budget_usage import BudgetUsage, budget_line, usage_report

CONTRACT_VERSION: Final = "1.1.0"
_BUILTIN_METHODS: Final = (
    "hello",
    "tool.list",
    "tool.invoke",
    "secret.get",
    "approval.request",
    "identity.sign",
)
METHODS: Final = (*_BUILTIN_METHODS, *(tool.method for tool in (*TOOLS, *AGENT_TOOLS)))


def hello(
    caller: Authorization,
    usage: Callable[[str], BudgetUsage | None],
    skills: SkillCatalogue,
) -> dict[str, Any]:
    """`usage` returns the model usage of a name. The result never contains the token or its
    hash."""
    return {
        "contracts": {"agent_api": CONTRACT_VERSION},
        "agent": {
            "id": caller.agent_id,
            "generation": caller.generation,
            "name": caller.name,
            "parent_id": caller.parent_id,
            "principal": caller.principal,
        },
        "policy": {
            "profile": caller.profile,
            "rights": [to_plain(right) for right in caller.rights],
            "approval_required": list(caller.approval_required),
            "children": list(caller.children),
            "secrets": list(caller.secrets),
        },
        "budgets": {
            "provider": caller.provider,
            "llm": None if caller.budget is None else to_plain(caller.budget),
            "use": usage_report(budget_line(caller), usage, time.time()),
            "limits": dict(caller.limits),
        },
        "state": caller.state,
        "own": {
            "pods": f"state/{caller.state}/",
            "memory": f"state.{caller.state}",
            "beads": f"for:{caller.agent}" if caller.agent else "",
            "events": caller.principal,
        },
        "skills": skills.offers(caller.skills),
        "mcp": list(caller.mcp),
        "methods": METHODS,
    }
