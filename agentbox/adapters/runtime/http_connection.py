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

MAX_ATTEMPTS = 3  # of a call that may be sent twice
RETRY_PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 10.0
CANCEL_GRACE_SECONDS = 1.0  # of a request whose caller was cancelled


class ReplyLost(SlotUnavailable):
    """The connection failed: whether the peer did what was asked is unknown."""


def unusable_slot(cfg: SlotConfig, reason: str) -> BackendError:
    """The slot cannot be used as it is configured, or as its peer answers."""
    return BackendError(f"cannot use {cfg.slot}: {reason}", slot=cfg.slot, impl=cfg.use)


def reply_lost(cfg: SlotConfig, reason: str) -> ReplyLost:
    """The error for a connection that failed; `why` is the name of what happened."""
    return ReplyLost(
        f"cannot reach the peer of {cfg.slot}: {reason}",
        retry_after=1,
        slot=cfg.slot,
        impl=cfg.use,
        since=None,
    )


def reply_timeout(cfg: SlotConfig, method: str, seconds: float) -> AdapterTimeout:
    """The error for an answer that did not come in time."""
    return AdapterTimeout(
        f"cannot finish {cfg.slot}.{method}: the peer gave no answer within {seconds:g} s",
        slot=cfg.slot,
        method=method,
        deadline_ms=round(seconds * 1000),
    )


def create_transport(cfg: SlotConfig, endpoint: str, *, max_idle: int) -> httpx.AsyncHTTPTransport:
    """Connections to the address of a slot, with its trust anchor; `kept` of them stay open while nothing is asked. Raises
    BackendError for an address that may not be used."""
    url_parts = urlsplit(endpoint)
    if url_parts.scheme not in ("http", "https") or not url_parts.hostname:
        raise unusable_slot(cfg, f"adapters.{cfg.slot}.endpoint must be an http(s) address")
    if url_parts.scheme == "http" and not is_loopback(url_parts.hostname):
        raise unusable_slot(cfg, "plain http is for loopback only: give the endpoint as https")
    limits = httpx.Limits(
        max_keepalive_connections=max_idle, keepalive_expiry=LIMITS.keepalive_expiry
    )
    return httpx.AsyncHTTPTransport(verify=ssl_context_of(cfg) or True, limits=limits)


def ssl_context_of(cfg: SlotConfig) -> ssl.SSLContext | None:
    """None where the usual anchors are enough."""
    authority = cfg.option("ca_file", "")
    return (
        ssl.create_default_context(cafile=str(cfg.paths.resolve(str(authority))))
        if authority
        else None
    )


class PendingRequests:
    """Those that are under way. When its caller is cancelled, one may still end in a second: httpcore (1.0) never frees a
    connection whose request is cancelled just after it was made, and after a hundred of them serves nobody."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[httpx.Response]] = set()

    async def finish(self, exchange: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        """The answer. One that nobody waits for any more is closed."""
        request = asyncio.ensure_future(exchange)
        self._running.add(request)
        request.add_done_callback(self._on_done)
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            await asyncio.wait({request}, timeout=CANCEL_GRACE_SECONDS)
            if request.done() and not request.cancelled() and request.exception() is None:
                await request.result().aclose()
            raise
        finally:
            request.cancel()

    async def cancel_all(self) -> None:
        """Cancels what is still asked."""
        for request in self._running:
            request.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _on_done(self, request: "asyncio.Future[httpx.Response]") -> None:
        self._running.discard(request)
        if not request.cancelled():
            request.exception()


def is_loopback(host: str) -> bool:
    """True for an address of this machine's own, and its usual name."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
