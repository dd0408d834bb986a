"""HTTP connections to one provider, with retries before anything was forwarded."""

import asyncio
import random
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import unquote, urlsplit

import httpcore

from agentbox.core.trimmed_imports import block_if_missing
from agentbox.gateway.llm.config import Provider
from agentbox.gateway.llm.gateway_counters import GatewayCounters
from agentbox.gateway.llm.vendor_protocol import ModelGatewayError
from agentbox.policy.outgoing import DIRECT, Outgoing

block_if_missing("sniffio")  # httpcore tries to import it for each call, 0.2 ms if absent

MAX_ATTEMPTS: Final = 3
_RETRIED_STATUSES: Final = (429, 500, 502, 503, 504, 529)  # 529: the Anthropic API is overloaded
_INITIAL_WAIT: Final = 0.5  # seconds, doubled each time, with 25 % jitter
MAX_WAIT: Final = 20.0  # seconds; a longer retry-after is returned to the agent
_CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 30.0  # keep-alive; servers close after 60 s or more
_CONNECTION_ERRORS: Final = (
    httpcore.ConnectError,
    httpcore.ConnectTimeout,
    httpcore.ReadError,
    httpcore.WriteError,
    httpcore.RemoteProtocolError,
)


class Upstream:
    """Used by one event loop, until `close`."""

    def __init__(
        self, provider: Provider, gauges: GatewayCounters, outgoing: Outgoing = DIRECT
    ) -> None:
        self._provider, self._gauges, self._outgoing = provider, gauges, outgoing
        self._base = urlsplit(provider.base_url)
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def close(self) -> None:
        """Closes all connections."""
        if self._pool is not None:
            await self._pool.aclose()

    async def send(
        self,
        method: str,
        path: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        deadline: float,
    ) -> httpcore.Response:
        """Returns the response head of any status; the caller closes it. `deadline` in event loop
        time. Raises ModelGatewayError (502)."""
        failure = ""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            response = None
            try:
                response = await self._send_once(method, path, headers, body, deadline)
            except _CONNECTION_ERRORS as error:
                failure = type(error).__name__
            if response is not None and response.status not in _RETRIED_STATUSES:
                return response
            retry_after = _retry_after(response) if response is not None else None
            pause = (
                retry_after
                if retry_after is not None
                else _INITIAL_WAIT * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            )
            past_deadline = asyncio.get_running_loop().time() + pause >= deadline
            if attempt == MAX_ATTEMPTS or pause > MAX_WAIT or past_deadline:
                if response is not None:
                    return response
                break
            if response is not None:
                await response.aclose()
            self._gauges.retries[self._provider.name] += 1
            await asyncio.sleep(pause)
        raise ModelGatewayError(
            "provider", f"the provider {self._provider.name} cannot be reached ({failure})"
        )

    async def _send_once(
        self,
        method: str,
        path: str,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        deadline: float,
    ) -> httpcore.Response:
        remaining = max(deadline - asyncio.get_running_loop().time(), 0.1)
        timeouts = {
            "connect": min(_CONNECT_SECONDS, remaining),
            "read": remaining,
            "write": remaining,
            "pool": remaining,
        }
        request = httpcore.Request(
            method, self._url(path), headers=headers, content=body, extensions={"timeout": timeouts}
        )
        return await self._open_pool().handle_async_request(request)

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

    def _open_pool(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            slots = self._provider.max_concurrent
            proxy = self._outgoing.proxy_for(self._base.geturl())
            is_https = "https" in (self._base.scheme, urlsplit(proxy).scheme)
            context = self._outgoing.context() if is_https else None
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=context,
                proxy=_proxy(proxy, context),
                max_connections=slots + 1,
                max_keepalive_connections=slots,
                keepalive_expiry=_IDLE_SECONDS,
            )
        return self._pool


def _proxy(url: str, context: ssl.SSLContext | None) -> httpcore.Proxy | None:
    """Of a URL with user and password; None for ""."""
    if not url:
        return None
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    pair = (unquote(parts.username or ""), unquote(parts.password or ""))
    return httpcore.Proxy(
        bare.geturl(),
        auth=pair if parts.username else None,
        ssl_context=context if parts.scheme == "https" else None,
    )


def header(response: httpcore.Response, name: bytes) -> bytes:
    """The first header of that name, or b""."""
    return next((value for key, value in response.headers if key.lower() == name), b"")


def _retry_after(response: httpcore.Response) -> float | None:
    """Seconds of Retry-After (RFC 9110 10.2.3) or of the millisecond form used by some; None if
    absent."""
    units: Mapping[bytes, float] = {b"retry-after-ms": 0.001, b"retry-after": 1.0}
    for name, unit in units.items():
        text = header(response, name).decode("latin-1").strip()
        if not text:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            return _seconds_until(text)
        return max(seconds, 0.0) if seconds == seconds else None  # ignore NaN
    return None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
