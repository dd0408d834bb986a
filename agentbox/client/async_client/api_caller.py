"""Calls operations of a box's API by name, asynchronously."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx

from agentbox.client.errors import ApiError, unreachable
from agentbox.client.http_transport import IDLE_SECONDS
from agentbox.client.streams import ENDED_EARLY, IDLE_TIMEOUT, RETRY_SECONDS, StreamResumption
from agentbox.client.transport import (
    Call,
    base_headers,
    build_call,
    check_response,
    parse_data,
    parse_error,
)
from agentbox.core.http.sse_parser import SseEvent, SseParser
from agentbox.core.trimmed_imports import block_if_missing

block_if_missing(
    "sniffio"
)  # httpcore tries to import it for each call; if absent, that took a fifth of the call

# A box closes connections idle for 5 s; the client drops them earlier.
LIMITS = httpx.Limits(
    max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE_SECONDS
)

if TYPE_CHECKING:
    from agentbox.client.async_client.attach import AsyncAttached


class AsyncApiCaller:
    """Calls the API of a box. Raises ApiError for an error response, BoxUnreachable without a
    response."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        timeout: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
        ssl: SSLContext | None = None,
        proxy: str = "",
    ) -> None:
        """`ssl` and `proxy` are for WebSockets; a custom `transport` has its own settings."""
        self.url = url.rstrip("/")
        self._token, self._timeout, self._ssl, self._proxy = token, timeout, ssl, proxy
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=base_headers(token),
            timeout=timeout,
            transport=transport,
            trust_env=False,
            limits=LIMITS,
            verify=ssl or True,
        )

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
        """Closes the connections."""
        await self._http.aclose()

    async def call(
        self, name: str, parameters: Mapping[str, str] | None = None, **options: Any
    ) -> Any:
        """As `request`, but returns the JSON of the response, None for 204."""
        return parse_data(await self.request(name, parameters, **options))

    async def request(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        accepted: tuple[int, ...] = (),
        wait_s: float | None = None,
    ) -> httpx.Response:
        """Calls an operation by name. A status in `accepted` is not an error."""
        call = build_call(name, parameters, query=query, body=body, headers=headers)
        return await self.send(call, accepted=accepted, wait_s=wait_s)

    async def send(
        self, call: Call, *, accepted: tuple[int, ...] = (), wait_s: float | None = None
    ) -> httpx.Response:
        """Sends a request from `build_call`. A status in `accepted` is not an error."""
        return check_response(await self._request(call, wait_s), accepted)

    @asynccontextmanager
    async def streaming(self, call: Call) -> AsyncIterator[httpx.Response]:
        """The response with its body unread."""
        try:
            async with self._http.stream(call.method, call.url, headers=call.headers) as response:
                if not response.is_success:
                    await response.aread()
                yield check_response(response, ())
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error

    async def attach(self, agent_id: str, generation: int) -> "AsyncAttached":
        """Attaches to an agent's pipes; `agents.attach` also detaches."""
        return await self.open_socket(
            "attach_agent", {"id": agent_id}, query={"generation": generation}
        )

    async def open_socket(
        self,
        name: str,
        parameters: Mapping[str, str],
        *,
        query: Mapping[str, object] | None = None,
    ) -> "AsyncAttached":
        """Attaches to the pipes behind an operation that is a WebSocket."""
        # The library of WebSockets is imported on use.
        from agentbox.client.async_client.attach import attach
        from agentbox.client.attach import connect_options, socket_url

        url, headers = socket_url(self.url, name, parameters, query), base_headers(self._token)
        return await attach(
            self.url,
            url,
            **connect_options(self.url, headers, self._ssl, self._timeout, self._proxy),
        )

    async def stream(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        last: str = "",
        since: str = "",
        reconnect_timeout: float = 60.0,
    ) -> AsyncIterator[SseEvent]:
        """As `ApiCaller.stream`."""
        resume = StreamResumption(reconnect_timeout, since)
        while True:
            try:
                async for event in self._events(
                    build_call(name, parameters, query=query, headers=resume.headers())
                ):
                    resume.on_event(event)
                    yield event
                    if event.event == last:
                        return
                if not last:
                    return
                raise httpx.RemoteProtocolError(ENDED_EARLY)
            except ApiError as error:
                if not resume.may_retry(error):
                    raise
            except httpx.TransportError as error:
                if not resume.may_retry(error):
                    raise unreachable(self.url, error) from error
            await asyncio.sleep(RETRY_SECONDS)

    async def _request(self, call: Call, wait_s: float | None) -> httpx.Response:
        timeout = self._http.timeout if wait_s is None else httpx.Timeout(wait_s)
        try:
            return await self._http.request(
                call.method,
                call.url,
                headers=call.headers,
                json=call.body,
                content=call.content,
                timeout=timeout,
            )
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error

    async def _events(self, call: Call) -> AsyncIterator[SseEvent]:
        timeout = httpx.Timeout(10.0, read=IDLE_TIMEOUT)
        async with self._http.stream(
            call.method, call.url, headers=call.headers, timeout=timeout
        ) as response:
            if not response.is_success:
                await response.aread()
                raise parse_error(response)
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk):
                    yield event
