"""Clients of the revisions with a handshake that take questions of MCP servers. They say so once,
when they initialize, and the id of their session repeats it, so that nothing is kept here. One that
forges the id is asked what it cannot answer.
"""

import secrets
from collections.abc import Collection
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from agentbox.box.supervision.applied_plan import applied_version
from agentbox.box.supervision.boot_record import load_plan
from agentbox.gateway.agent_api.mcp_stateless import takes_forms
from agentbox.gateway.config import GatewayConfig
from agentbox.plan.model import Plan

_HEADER: Final = "mcp-session-id"
_PREFIX: Final = "forms."
_NOT_ASKED: Final = "2025-03-26"  # the revision without questions


def takes_questions(request: Request) -> bool:
    """Whether the client of a call can be asked on its stream."""
    is_session = request.headers.get(_HEADER, "").startswith(_PREFIX)
    return is_session and "text/event-stream" in request.headers.get("accept", "")


class AskedSessions:
    """Follows the plan in force: a row of a server is live."""

    def __init__(self, config: GatewayConfig) -> None:
        self._paths = config.paths
        self._mark: tuple[int, int, int] | None = None
        self._asking = _asking_servers(config.plan)

    def begin(self, response: Response, params: Any, servers: Collection[str]) -> None:
        """Gives a session to a client that takes questions, if one of these servers may ask."""
        if not isinstance(params, dict) or not takes_forms(params.get("capabilities")):
            return
        if params.get("protocolVersion") == _NOT_ASKED or not self._may_ask(servers):
            return
        response.headers[_HEADER] = _PREFIX + secrets.token_urlsafe(16)

    def _may_ask(self, servers: Collection[str]) -> bool:
        if (mark := applied_version(self._paths)) != self._mark:
            self._asking, self._mark = _asking_servers(load_plan(self._paths.applied_plan)), mark
        return not self._asking.isdisjoint(servers)


def _asking_servers(plan: Plan) -> frozenset[str]:
    return frozenset(name for name, row in plan.mcp.servers.items() if row.elicitation)
