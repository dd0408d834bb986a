"""Shared HTTP client code of external slots: address checks, trust anchors and pending requests."""

import asyncio
import ssl
from collections.abc import Coroutine
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.client.async_client.api_caller import LIMITS
from agentbox.core.slot_errors import AdapterTimeout, BackendError, SlotUnavailable
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import TlsOptions
from agentbox.policy.outgoing import Outgoing

MAX_ATTEMPTS = 3  # for idempotent calls
RETRY_PAUSE_SECONDS = 0.1
OPEN_SECONDS = 10.0  # for the first request, and for attaching
CANCEL_GRACE_SECONDS = 1.0  # for a request whose caller was cancelled


class ReplyLost(SlotUnavailable):
    """The connection failed; whether the peer executed the request is unknown."""


def unusable_slot(cfg: SlotConfig[Options], reason: str) -> BackendError:
    """Return the error for an invalid configuration or an unusable response of the peer."""
    return BackendError(f"cannot use {cfg.slot}: {reason}", slot=cfg.slot, impl=cfg.use)


def reply_lost(cfg: SlotConfig[Options], reason: str) -> ReplyLost:
    """Return the error for a failed connection; `reason` names the exception."""
    return ReplyLost(
        f"cannot reach the peer of {cfg.slot}: {reason}",
        retry_after=1,
        slot=cfg.slot,
        impl=cfg.use,
        since=None,
    )


def reply_timeout(cfg: SlotConfig[Options], method: str, seconds: float) -> AdapterTimeout:
    """Return the error for a response that did not arrive in time."""
    return AdapterTimeout(
        f"cannot finish {cfg.slot}.{method}: the peer did not respond within {seconds:g} s",
        slot=cfg.slot,
        method=method,
        deadline_ms=round(seconds * 1000),
    )


def create_transport(
    cfg: SlotConfig[TlsOptions], endpoint: str, *, max_idle: int
) -> httpx.AsyncHTTPTransport:
    """Create the transport to a slot's endpoint with its trust anchor and at most `max_idle` idle
    connections. Raises BackendError if the address is not allowed."""
    url_parts = urlsplit(endpoint)
    if url_parts.scheme not in ("http", "https") or not url_parts.hostname:
        raise unusable_slot(cfg, f"adapters.{cfg.slot}.endpoint must be an http or https address")
    if url_parts.scheme == "http" and not is_loopback(url_parts.hostname):
        raise unusable_slot(cfg, "plain http is allowed for loopback only: use https")
    limits = httpx.Limits(
        max_keepalive_connections=max_idle, keepalive_expiry=LIMITS.keepalive_expiry
    )
    return httpx.AsyncHTTPTransport(
        verify=ssl_context_of(cfg) or True,
        limits=limits,
        proxy=proxy_to(endpoint, Outgoing.read(cfg.paths)),
    )


def proxy_to(url: str, outgoing: Outgoing) -> httpx.Proxy | None:
    """The proxy on the way to a URL; None for none."""
    if not (proxy := outgoing.proxy_for(url)):
        return None
    context = outgoing.context() if proxy.startswith("https:") else None
    return httpx.Proxy(proxy, ssl_context=context)


def ssl_context_of(cfg: SlotConfig[TlsOptions]) -> ssl.SSLContext | None:
    """Return the slot's TLS context; None for the default trust anchors."""
    authority = cfg.options.ca_file
    return Outgoing.read(cfg.paths).tls(cfg.paths.resolve(authority) if authority else None)


class PendingRequests:
    """Requests in progress. A request whose caller is cancelled may still finish within one second:
    httpcore (1.0) never frees a connection whose request is cancelled just after it was opened, and
    its pool is exhausted after a hundred of them."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[httpx.Response]] = set()

    async def finish(self, exchange: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        """Return the response. The response of a cancelled caller is closed."""
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
        """Cancel all pending requests."""
        for request in self._running:
            request.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _on_done(self, request: "asyncio.Future[httpx.Response]") -> None:
        self._running.discard(request)
        if not request.cancelled():
            request.exception()


def is_loopback(host: str) -> bool:
    """Return True for a loopback address and for `localhost`."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
