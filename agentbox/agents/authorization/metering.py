"""Counts the uses of rights with a count or a rate. Counted here, so that a restart of a checker
resets nothing."""

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
    """Count one use of every right that allows the request: the agent's own and those of its
    ancestors. All are counted or none, and stored before this returns. Raises PermissionDenied."""
    entry = host.authorizations.entries.get(params["agent_id"])
    scope, operation = params["scope"], params["operation"]
    if (
        entry is None
        or host.authorizations.active(entry.agent_id) is None
        or entry.generation != params["generation"]
    ):
        raise _denied(scope, "the agent is not running")
    if operation not in OPERATIONS.get(scope, ()):
        raise _denied(scope, f"unknown operation {operation}")
    now, chain = time.time(), (entry, *host.authorizations.ancestors(entry))
    grants = [(holder, _allowing_grant(holder, params, now)) for holder in chain]
    for _, grant in grants:
        if reason := grant.exhausted_reason(now):
            raise _denied(scope, reason)
    for holder, grant in grants:
        holder.grant_set = holder.grant_set.with_grant(grant.with_use(now))
    metered = [holder for holder, grant in grants if grant.is_metered]
    await asyncio.shield(host.save_or_raise(metered, ()))


def _allowing_grant(entry: AgentRecord, params: Mapping[str, Any], now: float) -> Grant:
    scope, operation = params["scope"], params["operation"]
    request = {"method": params.get("method", ""), "path": params.get("path", "")}
    grant_id = find_allowing_right(
        entry.grant_set.rights_and_secrets(now), scope, operation, params["value"], **request
    )
    grant = entry.grant_set.find(grant_id)
    if grant is None:
        raise _denied(scope, f"{entry.spec.name} has no right that allows {scope} {operation} here")
    return grant


def _denied(scope: str, reason: str) -> PermissionDenied:
    return PermissionDenied(f"cannot use a right of scope {scope}: {reason}", scope=scope)
