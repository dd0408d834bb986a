"""Counts the uses of rights with a count or a rate. Counted here, so that a restart of a checker
resets nothing."""

import asyncio
import time
from dataclasses import dataclass

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.registry.host_state import HostState
from agentbox.core.slot_errors import PermissionDenied
from agentbox.policy.patterns.scopes import OPERATIONS, Scope
from agentbox.policy.rights.grant_set import Grant
from agentbox.policy.rights.rights import find_allowing_right


@dataclass(frozen=True)
class Request:
    """What the right must allow; `method` and `path` of HTTP, "" for others."""

    scope: Scope
    operation: str
    value: str
    method: str = ""
    path: str = ""


async def consume(host: HostState, agent_id: str, generation: int, request: Request) -> None:
    """Count one use of every right that allows the request: the agent's own and those of its
    ancestors. All are counted or none, and stored before this returns. Raises PermissionDenied."""
    entry = host.authorizations.entries.get(agent_id)
    scope, operation = request.scope, request.operation
    if (
        entry is None
        or host.authorizations.active(entry.agent_id) is None
        or entry.generation != generation
    ):
        raise _denied(scope, "the agent is not running")
    if operation not in OPERATIONS.get(scope, ()):
        raise _denied(scope, f"unknown operation {operation}")
    now, chain = time.time(), (entry, *host.authorizations.ancestors(entry))
    grants = [(holder, _allowing_grant(holder, request, now)) for holder in chain]
    for _, grant in grants:
        if reason := grant.exhausted_reason(now):
            raise _denied(scope, reason)
    for holder, grant in grants:
        holder.grant_set = holder.grant_set.with_grant(grant.with_use(now))
    metered = [holder for holder, grant in grants if grant.is_metered]
    await asyncio.shield(host.save_or_raise(metered, ()))


def _allowing_grant(entry: AgentRecord, request: Request, now: float) -> Grant:
    scope, operation = request.scope, request.operation
    grant_id = find_allowing_right(
        entry.grant_set.rights_and_secrets(now),
        scope,
        operation,
        request.value,
        method=request.method,
        path=request.path,
    )
    grant = entry.grant_set.find(grant_id)
    if grant is None:
        raise _denied(scope, f"{entry.spec.name} has no right that allows {scope} {operation} here")
    return grant


def _denied(scope: str, reason: str) -> PermissionDenied:
    return PermissionDenied(f"cannot use a right of scope {scope}: {reason}", scope=scope)
