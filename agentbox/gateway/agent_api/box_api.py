"""The management API as an agent may use it: by the gateway's own token, in the agent's name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.gateway.agent_api.errors import DENIED, FAILED, DoorError
from agentbox.gateway.config import GatewayConfig
from agentbox.plan.names import GATEWAY
from agentbox.plan.network import LOOPBACK
from agentbox.policy.rights.standing import Standing

if TYPE_CHECKING:
    from agentbox.client.async_client.client import AsyncBoxClient
    from agentbox.client.attach import AsyncAttached

HEADER: Final = "Agentbox-On-Behalf-Of"
_DENIED: Final = (401, 403)
_TOLD: Final = ("title", "detail", "instance", "type", "code", "rule", "number", "message")  # elsewhere in the answer
_SECONDS: Final = (
    3600.0  # for one call: the most that limits.tool_timeout_seconds can say; the door keeps the agent's own
)


class BoxApi:
    """Opens its client at the first call; the token is this boot's."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._client: AsyncBoxClient | None = None
        self._url = f"http://{LOOPBACK}:{config.plan.api.port}"

    @property
    def client(self) -> "AsyncBoxClient":
        """Raises DoorError while there is no token to call with."""
        if self._client is None:
            from agentbox.client.async_client.client import (
                AsyncBoxClient,
            )  # large, and of no use to a gateway that only forwards

            self._client = AsyncBoxClient(self._url, token=self._token(), timeout=_SECONDS)
        return self._client

    async def attach(self, who: Standing, agent_id: str, generation: int) -> "AsyncAttached":
        """The pipes of an agent. Raises ApiError, BoxUnreachable, and DoorError without a token."""
        from agentbox.client import attach

        headers = {"Authorization": f"Bearer {self._token()}", **on_behalf(who)}
        url = attach.address(self._url, agent_id, generation)
        return await attach.attach_async(self._url, url, **attach.options(self._url, headers, None, _SECONDS))

    def _token(self) -> str:
        try:
            return self._config.paths.token(GATEWAY).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DoorError(FAILED, "cannot use the box's API: the gateway has no token for it") from error

    async def close(self) -> None:
        """Closes its connections."""
        if self._client is not None:
            await self._client.aclose()

    async def call(
        self, who: Standing, route: str, parameters: Mapping[str, str] | None = None, *,
        query: Mapping[str, object] | None = None, body: Any = None,
    ) -> Any:  # fmt: skip
        """The JSON of the answer. Raises DoorError."""
        try:
            return await self.client.call(route, parameters, query=query, body=body, headers=on_behalf(who))
        except (AgentboxError, ValueError) as error:
            raise told(error) from error


def on_behalf(who: Standing) -> dict[str, str]:
    """The header that says for whom a call is: agent, state, session, trace, and the name in [agents] where it has one."""
    return {HEADER: f"{who.agent_id} {who.state} {who.session_id} {who.trace_id} {who.agent}".rstrip()}


def told(error: AgentboxError | ValueError) -> DoorError:
    """What the API answered, as the door says it: the problem is the data."""
    from agentbox.client.errors import ApiError

    if not isinstance(error, ApiError):
        return DoorError(FAILED, str(error), "slot-unavailable" if isinstance(error, AgentboxError) else "validation")
    rule = f"api {error.problem.get('scope', '')}".strip() if error.status in _DENIED else ""
    shown = {name: value for name, value in error.problem.items() if name not in _TOLD}
    return DoorError(DENIED if rule else FAILED, error.message, error.code, rule=rule, **shown)
