"""Uses of rights that have a count or a rate: taken here, so that no restart of a checker gives any of them back."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.core.slot_errors import PermissionDenied
from agentbox.policy.patterns.scopes import OPERATIONS
from agentbox.policy.rights.grant_set import Grant
from agentbox.policy.rights.rights import find_allowing_right


async def consume(host: HostState, params: Mapping[str, Any]) -> None:
    """One use of every right that allows the request: the agent's own, and one of each agent that it descends from. All
    are taken or none, and kept before this returns. Raises PermissionDenied."""
    entry = host.authorizations.entries.get(params["agent_id"])
    scope, operation = params["scope"], params["operation"]
    if (
        entry is None
        or host.authorizations.active(entry.agent_id) is None
        or entry.generation != params["generation"]
    ):
        raise _denied(scope, "no process of that agent runs")
    if operation not in OPERATIONS.get(scope, ()):
        raise _denied(scope, f"there is no operation {operation}")
    now, chain = time.time(), (entry, *host.authorizations.ancestors(entry))
    grants = [(holder, _allowing_grant(holder, params, now)) for holder in chain]
    for _, grant in grants:
        if reason := grant.exhausted_reason(now):
            raise _denied(scope, reason)
    for one, grant in grants:
        one.holding = one.holding.with_grant(grant.with_use(now))
    metered = [one for one, grant in grants if grant.is_metered]
    await asyncio.shield(host.save_or_raise(metered, ()))


def _allowing_grant(entry: AgentRecord, params: Mapping[str, Any], now: float) -> Grant:
    scope, operation = params["scope"], params["operation"]
    request = {"method": params.get("method", ""), "path": params.get("path", "")}
    grant_id = find_allowing_right(
        entry.holding.rights_and_secrets(now), scope, operation, params["value"], **request
    )
    grant = entry.holding.find(grant_id)
    if grant is None:
        raise _denied(scope, f"no right of {entry.spec.name} allows {scope} {operation} here")
    return grant


def _denied(scope: str, reason: str) -> PermissionDenied:
    return PermissionDenied(f"cannot use a right of the scope {scope}: {reason}", scope=scope)
