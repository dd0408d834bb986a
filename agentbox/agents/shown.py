"""One agent as `GET /v1/agents/{id}` shows it: all that is known, with what it holds and where its files are."""

from dataclasses import replace
from typing import Any

from agentbox.adapters.orchestrator.contract import AgentInfo
from agentbox.agents.entry import Entry
from agentbox.agents.review.reviews import Reviews, works_in_branch


def shown(entry: Entry, reviews: Reviews) -> AgentInfo:
    """`branch`: `state` is `none` for an agent that works in the workspace itself or not at all, `open` while it works in
    a copy, `sealed` while `review` waits for the operator, and `over` afterwards."""
    waiting = next((one for one in reviews.page() if one["agent_id"] == entry.agent_id), None)
    return replace(entry.info(whole=True), branch={"state": _state(entry, waiting), "review": waiting})


def _state(entry: Entry, waiting: dict[str, Any] | None) -> str:
    if waiting is not None:
        return "sealed"
    if not works_in_branch(entry):
        return "none"
    return "over" if entry.over else "open"
