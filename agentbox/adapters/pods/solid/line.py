"""The connection of pods `external-solid` to its server: requests by path of the pod, answers, and only typed errors."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from agentbox.adapters.pods.local.bodies import AT_ONCE
from agentbox.adapters.pods.solid.answers import refusal
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.adapters.runtime.http_connection import (
    PAUSE_SECONDS,
    TIMEOUT_SECONDS,
    TRIES,
    Lost,
    Requests,
    late,
    lost,
    transport_to,
    unusable,
)
from agentbox.client.transport import base_headers
from agentbox.core.slot_errors import AdapterError
from agentbox.core.storage.sqlite import closed

KEPT = 20  # connections that stay open while nothing is asked
REDIRECTS = 3
PROBLEM_CAP = 64 << 10  # bytes: of the body of a refusal
_READING = ("GET", "HEAD", "OPTIONS")
_AUTH = ("none", "bearer")


class Line:
    """One root container of one server. None of the errors that come out holds the token."""

    def __init__(self, cfg: SlotConfig) -> None:
        self.cfg = cfg
        self._seconds = float(cfg.option("timeout_seconds", TIMEOUT_SECONDS))
        self._client: httpx.AsyncClient | None = None
        self._requests = Requests()
        self._streams: set[httpx.Response] = set()
        self.root = ""

    def open(self) -> None:
        """Makes the pool; connects to nothing. Raises BackendError for an address or a way to log in that may not be used."""
        auth = str(self.cfg.option("auth", "bearer"))
        if auth not in _AUTH:
            raise unusable(
                self.cfg, f'adapters.pods.auth = "{auth}" comes with a later release: use "bearer" or "none"'
            )
        endpoint = str(self.cfg.option("endpoint", ""))
        address = urlsplit(endpoint)
        if address.query or address.fragment or address.username is not None:
            raise unusable(self.cfg, "adapters.pods.endpoint is an address without query, fragment and login")
        self.root = f"{address.scheme}://{address.netloc}{address.path.rstrip('/')}/"
        token = self.cfg.secrets.get("token", "") if auth == "bearer" else ""
        self._client = httpx.AsyncClient(
            headers={"Accept-Encoding": "identity", "User-Agent": "agentbox", **base_headers(token)},
            transport=transport_to(self.cfg, endpoint, kept=KEPT), trust_env=False, timeout=self._seconds,
        )  # fmt: skip

    async def close(self) -> None:
        """Ends the connections, and what is still asked or read on them."""
        client, self._client = self._client, None
        await self._requests.end()
        for response in list(self._streams):
            await response.aclose()
        if client is not None:
            await client.aclose()

    def check_open(self) -> None:
        """Raises SlotUnavailable."""
        if self._client is None:
            raise closed(self.cfg.slot, self.cfg.use)

    async def ask(self, verb: str, path: str, *, method: str, again: bool = False, **request: Any) -> httpx.Response:
        """The answer, a success. `method` is that of the slot, for errors; a request that may be sent twice is sent `again`
        after a connection error. Raises what anything but a success stands for."""
        response = await self.raw(verb, path, method=method, again=again, **request)
        if not response.is_success:
            raise refusal(self.cfg, response, await self.whole(response, method, PROBLEM_CAP), path)
        return response

    async def raw(self, verb: str, path: str, *, method: str, again: bool = False, **request: Any) -> httpx.Response:
        """The answer, whatever its status. Its body has been read, unless it is one of a GET that is larger than 1 MiB or of
        unknown size: that one `pieces` gives."""
        for attempt in range(1, TRIES + 1):
            try:
                return await self._followed(verb, path, method, **request)
            except Lost:
                if not again or attempt == TRIES:
                    raise
                await asyncio.sleep(PAUSE_SECONDS * attempt)
        raise AssertionError("the last try returned or raised")

    def pieces(self, response: httpx.Response, method: str) -> "Stream":
        """The body of an answer that was not read yet."""
        return Stream(self, response, method)

    async def whole(self, response: httpx.Response, method: str, cap: int) -> bytes:
        """Its body, of which at most one byte over the cap is read."""
        if response.is_closed:
            return response.content
        found = bytearray()
        stream = self.pieces(response, method)
        async for piece in stream:
            found += piece
            if len(found) > cap:
                await stream.aclose()
                break
        return bytes(found)

    def failed(self, error: Exception, method: str) -> AdapterError:
        """The typed error for what httpx raised."""
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return late(self.cfg, method, self._seconds)
        return lost(self.cfg, type(error).__name__)

    async def _followed(
        self, verb: str, path: str, method: str, *, query: str = "", headers: Mapping[str, str] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None, seconds: float | None = None,
    ) -> httpx.Response:  # fmt: skip
        """A reading request follows redirects on its own server; a change of anything follows none."""
        url = httpx.URL(self.root + quote(path, safe="/") + (f"?{query}" if query else ""))
        for _ in range(REDIRECTS + 1):
            self.check_open()
            assert self._client is not None
            request = self._client.build_request(verb, url, headers=headers, content=content)
            response = await self._sent(self._client, request, method, seconds or self._seconds)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            there = url.join(response.headers["location"])
            if (there.scheme, there.host, there.port) != (url.scheme, url.host, url.port):
                raise unusable(self.cfg, f"the server redirects {method} to another origin")
            if verb not in _READING or there.path.rstrip("/") == url.path.rstrip("/"):
                raise unusable(self.cfg, f"the server redirects {method} to another address")
            url = there
        raise unusable(self.cfg, "the server redirects in circles")

    async def _sent(
        self, client: httpx.AsyncClient, request: httpx.Request, method: str, seconds: float
    ) -> httpx.Response:
        """A body in pieces takes the time that its caller gives it, and ends with its caller at once."""
        try:
            if not isinstance(request.stream, httpx.ByteStream):
                return await _answered(client, request)
            return await self._requests.finish(_in_time(client, request, seconds))
        except (httpx.TransportError, TimeoutError) as error:
            raise self.failed(error, method) from error

    def reading(self, response: httpx.Response, on: bool) -> None:
        """Counts the answer among those whose body is still on its way, or no longer."""
        (self._streams.add if on else self._streams.discard)(response)


class Stream:
    """The rest of a body as an iterator of pieces; frees its connection at the end, or when it is dropped."""

    def __init__(self, line: Line, response: httpx.Response, method: str) -> None:
        self._line, self._response, self._method = line, response, method
        self._pieces = response.aiter_raw()
        self._loop = asyncio.get_running_loop()
        line.reading(response, True)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._pieces)
        except StopAsyncIteration:
            await self.aclose()
            raise
        except (httpx.TransportError, httpx.StreamError) as error:
            await self.aclose()
            raise self._line.failed(error, self._method) from error

    async def aclose(self) -> None:
        """Ends the reading."""
        self._line.reading(self._response, False)
        await self._response.aclose()

    def __del__(self) -> None:
        if not self._response.is_closed and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._response.aclose()))
            self._line.reading(self._response, False)


async def _answered(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    response = await client.send(request, stream=True)
    length = response.headers.get("content-length", "")
    if request.method != "GET" or (length.isdecimal() and int(length) <= AT_ONCE):
        try:
            await response.aread()
        finally:
            await response.aclose()
    return response


async def _in_time(client: httpx.AsyncClient, request: httpx.Request, seconds: float) -> httpx.Response:
    async with asyncio.timeout(seconds):
        return await _answered(client, request)
