"""One agent as `GET /v1/agents/{id}` shows it: all that is known, with what it holds and has used, and where its files are."""

import time
from dataclasses import replace
from typing import Any

from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.agents.review.reviews import works_in_branch
from agentbox.contracts.orchestrator import AgentInfo
from agentbox.core.files.atomic import read_json
from agentbox.plan.names import MODELS_TOLD
from agentbox.policy.rights.spent import Spent, line_of, use_of


def shown(entry: Entry, host: Host) -> AgentInfo:
    """`branch`: `state` is `none` for an agent that works in the workspace itself or not at all, `open` while it works in
    a copy, `sealed` while `review` waits for the operator, and `over` afterwards. `budget` is as the gateway told last, at
    most about a second ago."""
    waiting = next((one for one in host.reviews.page() if one["agent_id"] == entry.agent_id), None)
    branch = {"state": _state(entry, waiting), "review": waiting}
    return replace(entry.info(whole=True), branch=branch, budget=_budget(entry, host))


def _state(entry: Entry, waiting: dict[str, Any] | None) -> str:
    if waiting is not None:
        return "sealed"
    if not works_in_branch(entry):
        return "none"
    return "over" if entry.over else "open"


def _budget(entry: Entry, host: Host) -> dict[str, Any]:
    if entry.holding.budget is None:
        return {}
    live = host.standings.live(entry.agent_id)  # ancestors of one that is over may be forgotten
    line = {entry.holding.agent or entry.agent_id: entry.holding.budget} if live is None else line_of(live)
    told = (read_json(host.config.paths.run / MODELS_TOLD) or {}).get("spent", {})
    return use_of(line, lambda name: Spent(**told[name]) if name in told else None, time.time())
