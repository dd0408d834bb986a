"""The connection of pods `external-solid` to its server: requests by pod path, responses and typed
errors."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from agentbox.adapters.pods.local.bodies import MAX_BUFFERED
from agentbox.adapters.pods.solid.responses import refusal_error
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.adapters.runtime.http_connection import (
    MAX_ATTEMPTS,
    RETRY_PAUSE_SECONDS,
    PendingRequests,
    ReplyLost,
    create_transport,
    reply_lost,
    reply_timeout,
    unusable_slot,
)
from agentbox.client.transport import base_headers
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite import closed_error
from agentbox.manifest.slot_options import SolidPodsOptions

MAX_IDLE = 20  # idle connections that stay open
REDIRECTS = 3
PROBLEM_CAP = 64 << 10  # bytes read of an error response
_READ_VERBS = ("GET", "HEAD", "OPTIONS")
_AUTH_KINDS = ("none", "bearer")


class SolidConnection:
    """A root container on a server. Raised errors never contain the token."""

    def __init__(self, cfg: SlotConfig[SolidPodsOptions]) -> None:
        self.cfg = cfg
        self._seconds = cfg.options.timeout_seconds
        self._client: httpx.AsyncClient | None = None
        self._requests = PendingRequests()
        self._streams: set[httpx.Response] = set()
        self.root = ""

    def open(self) -> None:
        """Create the pool without connecting. Raises BackendError for an address or auth method
        that is not allowed."""
        auth = self.cfg.options.auth
        if auth not in _AUTH_KINDS:
            raise unusable_slot(
                self.cfg,
                (
                    f'adapters.pods.auth = "{auth}" is not supported in this release: use '
                    f'"bearer" or "none"'
                ),
            )
        endpoint = self.cfg.options.endpoint
        address = urlsplit(endpoint)
        if address.query or address.fragment or address.username is not None:
            raise unusable_slot(
                self.cfg,
                "adapters.pods.endpoint must be an address without query, fragment and login",
            )
        self.root = f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}/"
        token = self.cfg.secrets.get("token", "") if auth == "bearer" else ""
        self._client = httpx.AsyncClient(
            headers={
                "Accept-Encoding": "identity",
                "User-Agent": "agentbox",
                **base_headers(token),
            },
            transport=create_transport(self.cfg, endpoint, max_idle=MAX_IDLE),
            trust_env=False,
            timeout=self._seconds,
        )

    async def close(self) -> None:
        """Close the connections and cancel pending requests and streams."""
        client, self._client = self._client, None
        await self._requests.cancel_all()
        for response in list(self._streams):
            await response.aclose()
        if client is not None:
            await client.aclose()

    def check_open(self) -> None:
        """Raises SlotUnavailable if closed."""
        if self._client is None:
            raise closed_error(self.cfg.slot, self.cfg.use)

    async def request(
        self, verb: str, path: str, *, method: str, idempotent: bool = False, **request: Any
    ) -> httpx.Response:
        """Return a successful response. `method` is the slot method, for error messages; an
        `idempotent` request is retried after a connection error. Raises the error of any other
        response."""
        response = await self.request_raw(
            verb, path, method=method, idempotent=idempotent, **request
        )
        if not response.is_success:
            raise refusal_error(
                self.cfg, response, await self.read_body(response, method, PROBLEM_CAP), path
            )
        return response

    async def request_raw(
        self, verb: str, path: str, *, method: str, idempotent: bool = False, **request: Any
    ) -> httpx.Response:
        """Return the response with any status. The body has been read, except for a GET of more
        than 1 MiB or unknown size; use `stream_body` then."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._follow_redirects(verb, path, method, **request)
            except ReplyLost:
                if not idempotent or attempt == MAX_ATTEMPTS:
                    raise
                await asyncio.sleep(RETRY_PAUSE_SECONDS * attempt)
        raise AssertionError("the last try returned or raised")

    def stream_body(self, response: httpx.Response, method: str) -> "BodyStream":
        """Return the unread body of a response."""
        return BodyStream(self, response, method)

    async def read_body(self, response: httpx.Response, method: str, cap: int) -> bytes:
        """Read the body, at most one byte over the cap."""
        if response.is_closed:
            return response.content
        body = bytearray()
        stream = self.stream_body(response, method)
        async for chunk in stream:
            body += chunk
            if len(body) > cap:
                await stream.aclose()
                break
        return bytes(body)

    def transport_error(self, error: Exception, method: str) -> AdapterError:
        """Return the typed error for an httpx exception."""
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return reply_timeout(self.cfg, method, self._seconds)
        return reply_lost(self.cfg, type(error).__name__)

    async def _follow_redirects(
        self,
        verb: str,
        path: str,
        method: str,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        seconds: float | None = None,
    ) -> httpx.Response:
        """Follow redirects of reading requests on the same server; writing requests follow none."""
        url = httpx.URL(self.root + quote(path, safe="/") + (f"?{query}" if query else ""))
        for _ in range(REDIRECTS + 1):
            self.check_open()
            assert self._client is not None
            request = self._client.build_request(verb, url, headers=headers, content=content)
            response = await self._send(self._client, request, method, seconds or self._seconds)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            target = url.join(response.headers["location"])
            if (target.scheme, target.host, target.port) != (url.scheme, url.host, url.port):
                raise unusable_slot(self.cfg, f"the server redirects {method} to another origin")
            if verb not in _READ_VERBS or target.path.rstrip("/") == url.path.rstrip("/"):
                raise unusable_slot(self.cfg, f"the server redirects {method} to another address")
            url = target
        raise unusable_slot(self.cfg, "the server redirects in a loop")

    async def _send(
        self, client: httpx.AsyncClient, request: httpx.Request, method: str, seconds: float
    ) -> httpx.Response:
        """A streamed body has no timeout and is cancelled together with its caller."""
        try:
            if not isinstance(request.stream, httpx.ByteStream):
                return await _send_and_read(client, request)
            return await self._requests.finish(_send_with_timeout(client, request, seconds))
        except (httpx.TransportError, TimeoutError) as error:
            raise self.transport_error(error, method) from error

    def track_stream(self, response: httpx.Response, active: bool) -> None:
        """Add or remove a response with an unread body."""
        (self._streams.add if active else self._streams.discard)(response)


class BodyStream:
    """The rest of a body as an iterator of chunks. Frees its connection at the end or on garbage
    collection."""

    def __init__(self, connection: SolidConnection, response: httpx.Response, method: str) -> None:
        self._connection, self._response, self._method = connection, response, method
        self._chunks = response.aiter_raw()
        self._loop = asyncio.get_running_loop()
        connection.track_stream(response, True)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            await self.aclose()
            raise
        except (httpx.TransportError, httpx.StreamError) as error:
            await self.aclose()
            raise self._connection.transport_error(error, self._method) from error

    async def aclose(self) -> None:
        """Close the response."""
        self._connection.track_stream(self._response, False)
        await self._response.aclose()

    def __del__(self) -> None:
        if not self._response.is_closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._response.aclose()))
            self._connection.track_stream(self._response, False)


async def _send_and_read(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    response = await client.send(request, stream=True)
    length = response.headers.get("content-length", "")
    if request.method != "GET" or (length.isdecimal() and int(length) <= MAX_BUFFERED):
        try:
            await response.aread()
        finally:
            await response.aclose()
    return response


async def _send_with_timeout(
    client: httpx.AsyncClient, request: httpx.Request, seconds: float
) -> httpx.Response:
    async with asyncio.timeout(seconds):
        return await _send_and_read(client, request)
