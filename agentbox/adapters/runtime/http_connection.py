"""What every connection of an external slot to an HTTP server shares: the address, the trust, requests that end."""

import asyncio
import ssl
from collections.abc import Coroutine
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.client.async_client.client import LIMITS
from agentbox.core.slot_errors import AdapterTimeout, BackendError, SlotUnavailable

TRIES = 3  # of a call that may be sent twice
PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 10.0
LAST_SECONDS = 1.0  # of a request whose caller was cancelled


class Lost(SlotUnavailable):
    """The connection failed: whether the peer did what was asked is unknown."""


def unusable(cfg: SlotConfig, why: str) -> BackendError:
    """The slot cannot be used as it is configured, or as its peer answers."""
    return BackendError(f"cannot use {cfg.slot}: {why}", slot=cfg.slot, impl=cfg.use)


def lost(cfg: SlotConfig, why: str) -> Lost:
    """The error for a connection that failed; `why` is the name of what happened."""
    return Lost(f"cannot reach the peer of {cfg.slot}: {why}", retry_after=1, slot=cfg.slot, impl=cfg.use, since=None)


def late(cfg: SlotConfig, method: str, seconds: float) -> AdapterTimeout:
    """The error for an answer that did not come in time."""
    return AdapterTimeout(
        f"cannot finish {cfg.slot}.{method}: the peer gave no answer within {seconds:g} s",
        slot=cfg.slot, method=method, deadline_ms=round(seconds * 1000),
    )  # fmt: skip


def transport_to(cfg: SlotConfig, endpoint: str, *, kept: int) -> httpx.AsyncHTTPTransport:
    """Connections to the address of a slot, with its trust anchor; `kept` of them stay open while nothing is asked. Raises
    BackendError for an address that may not be used."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise unusable(cfg, f"adapters.{cfg.slot}.endpoint must be an http(s) address")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise unusable(cfg, "plain http is for loopback only: give the endpoint as https")
    limits = httpx.Limits(max_keepalive_connections=kept, keepalive_expiry=LIMITS.keepalive_expiry)
    return httpx.AsyncHTTPTransport(verify=trust_of(cfg) or True, limits=limits)


def trust_of(cfg: SlotConfig) -> ssl.SSLContext | None:
    """None where the usual anchors are enough."""
    authority = cfg.option("ca_file", "")
    return ssl.create_default_context(cafile=str(cfg.paths.at(str(authority)))) if authority else None


class Requests:
    """Those that are under way. When its caller is cancelled, one may still end in a second: httpcore (1.0) never frees a
    connection whose request is cancelled just after it was made, and after a hundred of them serves nobody."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[httpx.Response]] = set()

    async def finish(self, sending: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        """The answer. One that nobody waits for any more is closed."""
        request = asyncio.ensure_future(sending)
        self._running.add(request)
        request.add_done_callback(self._ended)
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            await asyncio.wait({request}, timeout=LAST_SECONDS)
            if request.done() and not request.cancelled() and request.exception() is None:
                await request.result().aclose()
            raise
        finally:
            request.cancel()

    async def end(self) -> None:
        """Cancels what is still asked."""
        for request in self._running:
            request.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _ended(self, request: "asyncio.Future[httpx.Response]") -> None:
        self._running.discard(request)
        if not request.cancelled():
            request.exception()


def is_loopback(host: str) -> bool:
    """True for an address of this machine's own, and its usual name."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
