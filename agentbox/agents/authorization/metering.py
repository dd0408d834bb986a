"""Uses of rights that have a count or a rate: taken here, so that no restart of a checker gives any of them back."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from agentbox.agents.registry.entry import Entry
from agentbox.agents.registry.host import Host
from agentbox.core.slot_errors import PermissionDenied
from agentbox.policy.patterns.scopes import OPERATIONS
from agentbox.policy.rights.holding import Grant
from agentbox.policy.rights.rights import allowing


async def use(host: Host, asked: Mapping[str, Any]) -> None:
    """One use of every right that allows the request: the agent's own, and one of each agent that it descends from. All
    are taken or none, and kept before this returns. Raises PermissionDenied."""
    entry = host.standings.entries.get(asked["agent_id"])
    scope, operation = asked["scope"], asked["operation"]
    if entry is None or host.standings.live(entry.agent_id) is None or entry.generation != asked["generation"]:
        raise _refused(scope, "no process of that agent runs")
    if operation not in OPERATIONS.get(scope, ()):
        raise _refused(scope, f"there is no operation {operation}")
    now, chain = time.time(), (entry, *host.standings.ancestors(entry))
    found = [(one, _allowing(one, asked, now)) for one in chain]
    for _, grant in found:
        if why := grant.spent(now):
            raise _refused(scope, why)
    for one, grant in found:
        one.holding = one.holding.with_grant(grant.taken(now))
    counted = [one for one, grant in found if grant.counted]
    await asyncio.shield(host.keep(counted, ()))


def _allowing(entry: Entry, asked: Mapping[str, Any], now: float) -> Grant:
    scope, operation = asked["scope"], asked["operation"]
    request = {"method": asked.get("method", ""), "path": asked.get("path", "")}
    grant_id = allowing(entry.holding.asked_for(now), scope, operation, asked["value"], **request)
    grant = entry.holding.find(grant_id)
    if grant is None:
        raise _refused(scope, f"no right of {entry.spec.name} allows {scope} {operation} here")
    return grant


def _refused(scope: str, why: str) -> PermissionDenied:
    return PermissionDenied(f"cannot use a right of the scope {scope}: {why}", scope=scope)
