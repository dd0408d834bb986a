"""One agent as `GET /v1/agents/{id}` shows it: with its grants, their use, and its branch."""

import time
from dataclasses import replace
from typing import Any

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.agents.review.reviews import uses_branch
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.core.files.atomic import read_json
from agentbox.plan.names import MODEL_METRICS_FILE
from agentbox.policy.rights.budget_usage import BudgetUsage, budget_line, usage_report


def detailed_info(entry: AgentRecord, host: HostState) -> AgentInfo:
    """`branch`: `state` is `none` for an agent without a branch, `open` while it works in one,
    `sealed` while `review` waits for the operator, then `over`. `budget` is what the gateway
    reported last, at most about a second ago."""
    pending = next(
        (review for review in host.reviews.page() if review["agent_id"] == entry.agent_id), None
    )
    branch = {"state": _state(entry, pending), "review": pending}
    return replace(entry.info(with_policy=True), branch=branch, budget=_budget(entry, host))


def _state(entry: AgentRecord, pending: dict[str, Any] | None) -> str:
    if pending is not None:
        return "sealed"
    if not uses_branch(entry):
        return "none"
    return "over" if entry.over else "open"


def _budget(entry: AgentRecord, host: HostState) -> dict[str, Any]:
    if entry.grant_set.budget is None:
        return {}
    authorization = host.authorizations.active(
        entry.agent_id
    )  # ancestors of an ended agent may have been discarded
    budgets = (
        {entry.grant_set.agent or entry.agent_id: entry.grant_set.budget}
        if authorization is None
        else budget_line(authorization)
    )
    spent = (read_json(host.config.paths.run / MODEL_METRICS_FILE) or {}).get("spent", {})
    return usage_report(
        budgets, lambda name: BudgetUsage(**spent[name]) if name in spent else None, time.time()
    )
