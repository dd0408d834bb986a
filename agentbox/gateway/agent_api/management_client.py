"""Client of the management API, with the gateway's token and on behalf of an agent."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.gateway.agent_api.errors import DENIED, FAILED, AgentApiError
from agentbox.gateway.config import GatewayConfig
from agentbox.plan.names import GATEWAY
from agentbox.plan.network import LOOPBACK
from agentbox.policy.rights.authorization import Authorization

if TYPE_CHECKING:
    from agentbox.client.async_client.attach import AsyncAttached
    from agentbox.client.async_client.client import AsyncBoxClient

ON_BEHALF_HEADER: Final = "Agentbox-On-Behalf-Of"
_DENIED_STATUSES: Final = (401, 403)
_OMITTED_MEMBERS: Final = (
    "title",
    "detail",
    "instance",
    "type",
    "code",
    "rule",
    "number",
    "message",
    "hint",  # for the operator
)  # elsewhere in the response
_TIMEOUT_SECONDS: Final = (
    3600.0  # the maximum of limits.tool_timeout_seconds, which AgentApi enforces
)


class ManagementClient:
    """Opens its client at the first call; the token is that of this boot."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._client: AsyncBoxClient | None = None
        self._url = f"http://{LOOPBACK}:{config.plan.api.port}"

    @property
    def client(self) -> "AsyncBoxClient":
        """Raises AgentApiError if the gateway has no token."""
        if self._client is None:
            from agentbox.client.async_client.client import (
                AsyncBoxClient,
            )  # slow to import, not needed for forwarding only

            self._client = AsyncBoxClient(self._url, token=self._token(), timeout=_TIMEOUT_SECONDS)
        return self._client

    async def attach(
        self, caller: Authorization, agent_id: str, generation: int
    ) -> "AsyncAttached":
        """Attaches to an agent. Raises ApiError, BoxUnreachable, and AgentApiError without a
        token."""
        from agentbox.client.async_client.attach import attach
        from agentbox.client.attach import attach_url, connect_options

        headers = {"Authorization": f"Bearer {self._token()}", **on_behalf_headers(caller)}
        url = attach_url(self._url, agent_id, generation)
        return await attach(
            self._url, url, **connect_options(self._url, headers, None, _TIMEOUT_SECONDS)
        )

    def _token(self) -> str:
        try:
            return self._config.paths.token(GATEWAY).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AgentApiError(
                FAILED, "cannot use the management API: the gateway has no token"
            ) from error

    async def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def call(
        self,
        caller: Authorization,
        route: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
    ) -> Any:
        """Returns the JSON of the response. Raises AgentApiError."""
        try:
            return await self.client.call(
                route, parameters, query=query, body=body, headers=on_behalf_headers(caller)
            )
        except (AgentboxError, ValueError) as error:
            raise to_agent_api_error(error) from error


def on_behalf_headers(caller: Authorization) -> dict[str, str]:
    """The header naming the agent of a call: id, state, session, trace, and its name in [agents] if
    any."""
    value = f"{caller.agent_id} {caller.state} {caller.session_id} {caller.trace_id} {caller.agent}"
    return {ON_BEHALF_HEADER: value.rstrip()}


def to_agent_api_error(error: AgentboxError | ValueError) -> AgentApiError:
    """Converts an error of the management API; the problem document becomes the data."""
    from agentbox.client.errors import ApiError

    if not isinstance(error, ApiError):
        return AgentApiError(
            FAILED,
            str(error),
            "slot-unavailable" if isinstance(error, AgentboxError) else "validation",
        )
    rule = (
        f"api {error.problem.get('scope', '')}".strip() if error.status in _DENIED_STATUSES else ""
    )
    details = {name: value for name, value in error.problem.items() if name not in _OMITTED_MEMBERS}
    return AgentApiError(
        DENIED if rule else FAILED, error.message, error.code, rule=rule, **details
    )
