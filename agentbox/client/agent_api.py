"""The door of a box as an agent calls it: `Door` waits, `AsyncDoor` is awaited. Both read AGENTBOX_URL and AGENTBOX_TOKEN."""

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
_KEEP_ALIVE_SECONDS: Final = 4.0  # the door closes a connection that was idle for 5 s


class AgentApiDenied(AgentboxError):
    """The door answered with an error: `number` is JSON-RPC's, `code` a word, `data` all that was said."""

    def __init__(self, number: int, message: str, data: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.number, self.data = number, data
        self.code = str(data.get("code", ""))


class AgentApiUnreachable(AgentboxError):
    """Nothing that speaks JSON-RPC answered."""


class AgentApiClient:
    """Calls over one kept connection. Not for several threads at once."""

    def __init__(self, url: str = "", token: str = "", *, timeout: float = 60.0) -> None:
        """`url` and `token` are by default those that an agent finds in its environment. Raises DoorUnreachable without."""
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
        """The result. Raises DoorRefused, DoorUnreachable."""
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
        """Who this agent is, what it may do, and what it may use up."""
        info: Mapping[str, Any] = self.call("hello")
        return info

    def tool(self, name: str, /, **arguments: Any) -> Any:
        """A tool by its name, such as `memory/search`."""
        return self.call("tool.invoke", name=name, arguments=arguments)


class AsyncAgentApiClient:
    """The same, awaited; several calls may be under way."""

    def __init__(self, url: str = "", token: str = "", *, timeout: float = 60.0) -> None:
        """As Door."""
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
        """The result. Raises DoorRefused, DoorUnreachable."""
        import httpx  # rarely needed beside Door, and slow to import

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
        """As Door.hello."""
        info: Mapping[str, Any] = await self.call("hello")
        return info

    async def tool(self, name: str, /, **arguments: Any) -> Any:
        """As Door.tool."""
        return await self.call("tool.invoke", name=name, arguments=arguments)


def _resolve_credentials(url: str, token: str) -> tuple[str, str]:
    url, token = url or environment().get(URL, ""), token or environment().get(TOKEN, "")
    if not url or not token:
        missing = URL if not url else TOKEN
        raise AgentApiUnreachable(
            f"cannot find the door of the box: {missing} is not set", "An agent of a box has both."
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
            f"cannot understand what answers at {url}: it speaks no JSON-RPC"
        ) from cause
    raise denied


def _unreachable(url: str, error: Exception) -> AgentApiUnreachable:
    return AgentApiUnreachable(f"cannot reach the door at {url}: {error or type(error).__name__}")
