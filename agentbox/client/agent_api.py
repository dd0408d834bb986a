"""Clients of the agent API for agents: `AgentApiClient` blocks, `AsyncAgentApiClient` is awaited.
Both read AGENTBOX_URL and AGENTBOX_TOKEN."""

import http.client
import itertools
import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import environment

if TYPE_CHECKING:
    import httpx

URL, TOKEN = "AGENTBOX_URL", "AGENTBOX_TOKEN"
PATH: Final = "/rpc"
_KEEP_ALIVE_SECONDS: Final = 4.0  # the server closes a connection idle for 5 s


class AgentApiDenied(AgentboxError):
    """An error response: `number` is the JSON-RPC code, `code` the agent API's, `data` its data."""

    def __init__(self, number: int, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.number, self.data = number, data
        self.code = str(data.get("code", ""))


class AgentApiUnreachable(AgentboxError):
    """No JSON-RPC response was received."""


class AgentApiClient:
    """Calls over one persistent connection. Not thread-safe."""

    def __init__(self, url: str = "", token: str = "", *, timeout: float = 60.0) -> None:
        """`url` and `token` default to the environment variables. Raises AgentApiUnreachable if one
        is missing."""
        self._url, self._token = _resolve_credentials(url, token)
        parts = urlsplit(self._url)
        self._http = http.client.HTTPConnection(
            parts.hostname or "", parts.port or 80, timeout=timeout
        )
        self._ids, self._last_used = itertools.count(1), 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Idempotent; the next call opens another."""
        self._http.close()

    def call(self, method: str, /, **params: Any) -> Any:
        """Returns the result. Raises AgentApiDenied, AgentApiUnreachable."""
        if time.monotonic() - self._last_used > _KEEP_ALIVE_SECONDS:
            self._http.close()
        try:
            self._http.request(
                "POST",
                PATH,
                _encode_request(next(self._ids), method, params),
                _headers(self._token),
            )
            response = self._http.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            raise _unreachable(self._url, error) from error
        self._last_used = time.monotonic()
        return _parse_response(self._url, response)

    def hello(self) -> Mapping[str, Any]:
        """Identity, rights and budgets of this agent."""
        info: Mapping[str, Any] = self.call("hello")
        return info

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """Calls a tool by name, such as `memory/search`."""
        return self.call("tool.invoke", name=name, arguments=arguments)


class AsyncAgentApiClient:
    """The asynchronous version; calls may run concurrently."""

    def __init__(self, url: str = "", token: str = "", *, timeout: float = 60.0) -> None:
        """Like AgentApiClient."""
        self._url, self._token = _resolve_credentials(url, token)
        self._timeout = timeout
        self._ids = itertools.count(1)
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections. Idempotent; the next call opens another."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def call(self, method: str, /, **params: Any) -> Any:
        """Returns the result. Raises AgentApiDenied, AgentApiUnreachable."""
        import httpx  # rarely needed, slow to import

        if self._http is None:
            limits = httpx.Limits(keepalive_expiry=_KEEP_ALIVE_SECONDS)
            self._http = httpx.AsyncClient(trust_env=False, timeout=self._timeout, limits=limits)
        try:
            body = _encode_request(next(self._ids), method, params)
            response = await self._http.post(
                self._url + PATH, content=body, headers=_headers(self._token)
            )
        except httpx.TransportError as error:
            raise _unreachable(self._url, error) from error
        return _parse_response(self._url, response.content)

    async def hello(self) -> Mapping[str, Any]:
        """Like AgentApiClient.hello."""
        info: Mapping[str, Any] = await self.call("hello")
        return info

    async def tool(self, name: str, /, **arguments: Any) -> Any:
        """Like AgentApiClient.tool."""
        return await self.call("tool.invoke", name=name, arguments=arguments)


def _resolve_credentials(url: str, token: str) -> tuple[str, str]:
    url, token = url or environment().get(URL, ""), token or environment().get(TOKEN, "")
    if not url or not token:
        missing = URL if not url else TOKEN
        raise AgentApiUnreachable(
            f"cannot find the agent API: {missing} is not set",
            "Run this in an agent of a box, where both variables are set.",
        )
    return url.rstrip("/"), token


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def _encode_request(request_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    ).encode()


def _parse_response(url: str, response: bytes) -> Any:
    try:
        document = json.loads(response)
        error = document.get("error")
        if error is None:
            return document["result"]
        denied = AgentApiDenied(int(error["code"]), str(error["message"]), error.get("data") or {})
    except (ValueError, AttributeError, KeyError, TypeError) as cause:
        raise AgentApiUnreachable(
            f"cannot parse the response of {url}: it is not JSON-RPC"
        ) from cause
    raise denied


def _unreachable(url: str, error: Exception) -> AgentApiUnreachable:
    return AgentApiUnreachable(
        f"cannot reach the agent API at {url}: {error or type(error).__name__}"
    )
