"""Calls that the gateway makes for an agent, with the permissions of that agent only."""

import re
from collections.abc import Mapping

from agentbox.api.auth.authentication import Caller
from agentbox.contracts.routes.route import Route
from agentbox.core.http.problems import invalid
from agentbox.core.slot_errors import PermissionDenied
from agentbox.plan.names import GATEWAY
from agentbox.policy.rights.authorization import PRINCIPAL

HEADER = "agentbox-on-behalf-of"
_GATEWAY_PRINCIPAL = f"urn:agentbox:program:{GATEWAY}"
_VALUE = re.compile(
    r"([0-9a-f-]{36}) ([0-9a-f-]{36}) ([!-~]{1,128}) ([0-9a-f]{32})(?: "
    r"([A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
)
SCOPES = frozenset(
    f"{slot}:{verb}"
    for slot in ("beads", "pods", "memory", "events", "agents")
    for verb in ("read", "write")
)


def resolve_on_behalf(caller: Caller, headers: Mapping[str, str], route: Route) -> Caller:
    """The agent named by the header instead of the gateway. Rejects the header from any other
    caller, and routes not available to agents; each of those checks ownership. Raises
    PermissionDenied, ValidationError.
    """
    value = headers.get(HEADER)
    if value is None:
        return caller
    if caller.principal != _GATEWAY_PRINCIPAL:
        raise PermissionDenied("cannot act for an agent: only the gateway does", scope="core")
    match = _VALUE.fullmatch(value)
    if match is None:
        raise invalid(
            HEADER,
            "must be the ids of an agent, its state, session and trace, and its name in "
            "[agents] where it has one",
        )
    if not route.agents:
        raise PermissionDenied("cannot serve this route to an agent", scope="admin")
    agent_id, state, session, trace, name = match.groups(default="")
    principal = f"{PRINCIPAL}{agent_id}"
    return Caller(
        principal,
        SCOPES,
        pod_prefix=f"state/{state}/",
        memory_prefix=f"state.{state}",
        event_source=principal,
        agent_id=agent_id,
        agent_name=name,
        session_id=session,
        trace_id=trace,
    )
