"""The line to one provider: kept connections, and another try while nothing was passed on yet."""

import asyncio
import random
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import httpcore

from agentbox.core.trimmed_imports import search_once
from agentbox.gateway.llm.config import Provider
from agentbox.gateway.llm.gauges import Gauges
from agentbox.gateway.llm.types import Answer

search_once("sniffio")  # httpcore asks for it at each call, 0.2 ms each where it is not there

TRIES: Final = 3
_AGAIN: Final = (429, 500, 502, 503, 504, 529)  # 529: the Anthropic API is overloaded
_FIRST_WAIT: Final = 0.5  # seconds, doubled each time, a quarter more or less
LONGEST_WAIT: Final = 20.0  # seconds; a provider that asks for more is passed on to the agent
_CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 30.0  # a kept connection; servers close theirs after 60 s and more
_BROKEN: Final = (
    httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ReadError, httpcore.WriteError, httpcore.RemoteProtocolError,
)  # fmt: skip


class Upstream:
    """Used by one event loop, until `close`."""

    def __init__(self, provider: Provider, gauges: Gauges) -> None:
        self._provider, self._gauges = provider, gauges
        self._base = urlsplit(provider.base_url)
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def close(self) -> None:
        """Cuts what is open."""
        if self._pool is not None:
            await self._pool.aclose()

    async def send(
        self, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes, deadline: float
    ) -> httpcore.Response:
        """The head of an answer, whatever its status; close it. `deadline` in the loop's time. Raises Answer (502)."""
        failure = ""
        for attempt in range(1, TRIES + 1):
            response = None
            try:
                response = await self._once(method, path, headers, body, deadline)
            except _BROKEN as error:
                failure = type(error).__name__
            if response is not None and response.status not in _AGAIN:
                return response
            wait = _asked(response) if response is not None else None
            pause = wait if wait is not None else _FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            late = asyncio.get_running_loop().time() + pause >= deadline
            if attempt == TRIES or pause > LONGEST_WAIT or late:
                if response is not None:
                    return response
                break
            if response is not None:
                await response.aclose()
            self._gauges.retries[self._provider.name] += 1
            await asyncio.sleep(pause)
        raise Answer("provider", f"the provider {self._provider.name} cannot be reached ({failure})")

    async def _once(
        self, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes, deadline: float
    ) -> httpcore.Response:
        rest = max(deadline - asyncio.get_running_loop().time(), 0.1)
        times = {"connect": min(_CONNECT_SECONDS, rest), "read": rest, "write": rest, "pool": rest}
        request = httpcore.Request(
            method, self._url(path), headers=headers, content=body, extensions={"timeout": times}
        )
        return await self._line().handle_async_request(request)

    def _url(self, path: str) -> httpcore.URL:
        default = {"http": 80, "https": 443}[self._base.scheme]
        return httpcore.URL(
            scheme=self._base.scheme,
            host=self._base.hostname or "",
            port=self._base.port or default,
            target=self._base.path.rstrip("/") + path,
        )

    def host(self) -> bytes:
        """The value of `Host`."""
        return self._base.netloc.rpartition("@")[2].encode()

    def _line(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            slots = self._provider.max_concurrent
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=_trust() if self._base.scheme == "https" else None,
                max_connections=slots + 1,
                max_keepalive_connections=slots,
                keepalive_expiry=_IDLE_SECONDS,
            )
        return self._pool


def _trust() -> ssl.SSLContext:
    """The authorities of this machine."""
    return ssl.create_default_context()


def header(response: httpcore.Response, name: bytes) -> bytes:
    """The first of that name, b"" where there is none."""
    return next((value for key, value in response.headers if key.lower() == name), b"")


def _asked(response: httpcore.Response) -> float | None:
    """Seconds that the provider asks to wait (RFC 9110 10.2.3, and the millisecond form of some), None where it does not."""
    named: Mapping[bytes, float] = {b"retry-after-ms": 0.001, b"retry-after": 1.0}
    for name, unit in named.items():
        text = header(response, name).decode("latin-1").strip()
        if not text:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            return _until(text)
        return max(seconds, 0.0) if seconds == seconds else None  # a number that is none says nothing
    return None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
