"""Admits an agent: one fold over steps, each of which decides one part of it or refuses it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from agentbox.adapters.orchestrator import spec_checks
from agentbox.agents.admission.definitions import resolve_definition
from agentbox.agents.admission.draft import AdmissionInputs, Draft, Requester, Step
from agentbox.agents.admission.grants import (
    apply_constraints,
    resolve_policy,
    restrict_to_parent,
)
from agentbox.agents.admission.limits import check_capacity, effective_limits, max_exceeded
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.slot_errors import InvalidTransition, NotFound

__all__ = ["STEPS", "UNCOUNTED", "Requester", "admit"]


def check_form(draft: Draft, _inputs: AdmissionInputs) -> Draft:
    """Raises ValidationError for a spec that no host can start."""
    spec_checks.check_form(draft.spec)
    return draft


def resolve_parent(draft: Draft, inputs: AdmissionInputs) -> Draft:
    """Raises NotFound, InvalidTransition for a parent that has ended, QuotaExceeded below
    `max_depth`."""
    agent_id, parent = draft.spec.parent_id, inputs.parent
    if agent_id is None:
        return draft
    if parent is None:
        raise NotFound(f"cannot find agent {agent_id}", resource="agent", id=agent_id)
    if parent.over:
        members: dict[str, Any] = {
            "id": agent_id,
            "from": parent.state,
            "to": "parent",
            "blockers": [],
        }
        raise InvalidTransition(f"cannot use agent {agent_id} as parent: it has ended", **members)
    if parent.depth + 1 > inputs.config.max_depth:
        raise max_exceeded("max_depth", parent.depth + 1, inputs.config.max_depth)
    return replace(draft, parent=parent)


STEPS: Final[tuple[Step, ...]] = (
    check_form,
    resolve_definition,
    resolve_parent,
    effective_limits,
    resolve_policy,
    apply_constraints,
    restrict_to_parent,
    check_capacity,
)
UNCOUNTED: Final = STEPS[:-1]  # for a program of agent-host itself, which takes nobody's place


def admit(
    spec: AgentSpec, requester: Requester, inputs: AdmissionInputs, steps: Sequence[Step] = STEPS
) -> Draft:
    """The agent that may be started. The only random part are the ids of its grants. Raises the
    slot errors for an agent that may not be started, or not now."""
    draft = Draft(spec=spec, requester=requester, ceiling=inputs.config.limits)
    for step in steps:
        draft = step(draft, inputs)
    return draft
