"""The connection of an external-http slot to the API of another box: its errors, its retries, its contract version."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.base import SlotConfig
from agentbox.adapters.errors import (
    AdapterError,
    AdapterTimeout,
    BackendError,
    ContractMismatch,
    SlotUnavailable,
    from_problem,
)
from agentbox.adapters.sqlite import closed
from agentbox.adapters.wire import refuse
from agentbox.client.aio import AsyncBoxClient
from agentbox.client.calls import LIMITS, Call, call_of
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.sse import SseEvent

if TYPE_CHECKING:
    from agentbox.client.attach import AsyncAttached

TRIES = 3  # of a call that may be sent twice (slots.md 4)
PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 10.0
LAST_SECONDS = 1.0  # of a request whose caller was cancelled


class Peer:
    """One box, as a slot sees it. Only typed errors come out; none holds the token."""

    def __init__(self, cfg: SlotConfig, *, kept: int = 20) -> None:
        """`kept` connections stay open while nothing is asked."""
        self._cfg, self._kept = cfg, kept
        self._client: AsyncBoxClient | None = None
        self._running: set[asyncio.Future[httpx.Response]] = set()

    async def open(self, contract_version: str) -> None:
        """Connects. Raises ContractMismatch for another major version of the slot's contract, BackendError for an address
        that may not be used."""
        made = self._made()
        try:
            found = await self._once(made, call_of("meta"), "open", TIMEOUT_SECONDS)
            theirs = str(found.json()["adapters"][self._cfg.slot]["contract_version"])
            if theirs.partition(".")[0] != contract_version.partition(".")[0]:
                row = {"slot": self._cfg.slot, "ours": contract_version, "theirs": theirs}
                raise ContractMismatch(
                    f"cannot use the {self._cfg.slot} of the peer: contract {theirs}", mismatches=[row]
                )
        except BaseException as error:
            await made.aclose()
            if isinstance(error, (KeyError, TypeError, ValueError)):
                raise self._broken("the endpoint answers, but it is no agentbox") from error
            raise
        self._client = made

    async def close(self) -> None:
        """Ends the connections, and what is still asked on them."""
        client, self._client = self._client, None
        for request in self._running:
            request.cancel()
        if self._running:
            await asyncio.wait(self._running)
        if client is not None:
            await client.aclose()

    async def send(
        self, name: str, parameters: Mapping[str, str] | None = None, *, method: str,
        again: bool = True, **request: Any,
    ) -> httpx.Response:  # fmt: skip
        """The answer of a route. `method` is that of the slot, for errors; a call that may be sent twice is sent `again`
        after a connection error. Raises what the peer answers as the same typed error."""
        return await self.carry(_call(name, parameters, request), method=method, again=again)

    async def carry(self, call: Call, *, method: str, again: bool, seconds: float | None = None) -> httpx.Response:
        """As `send`, for a request that is made already; `seconds` in place of `timeout_seconds`."""
        if self._client is None:
            raise closed(self._cfg.slot, self._cfg.use)
        seconds = float(self._cfg.option("timeout_seconds", TIMEOUT_SECONDS)) if seconds is None else seconds
        for attempt in range(1, TRIES + 1):
            try:
                return await self._once(self._client, call, method, seconds)
            except Lost as error:
                if not again or attempt == TRIES:
                    raise
                await asyncio.sleep(PAUSE_SECONDS * attempt)
                if self._client is None:
                    raise closed(self._cfg.slot, self._cfg.use) from error
        raise AssertionError("the last try returned or raised")

    async def events(
        self, name: str, parameters: Mapping[str, str], *, method: str, query: Mapping[str, object], since: str, patience: float
    ) -> AsyncIterator[SseEvent]:  # fmt: skip
        """Events of a streaming route, each once, across connections that break, for `patience` seconds without one."""
        with self._typed(method, patience):
            async for event in self._open_client().stream(
                name, parameters, query=query, since=since, patience=patience
            ):
                yield event

    async def attach(self, agent_id: str, generation: int) -> "AsyncAttached":
        """The pipes of an agent of the peer."""
        with self._typed("attach", TIMEOUT_SECONDS):
            return await self._open_client().attach(agent_id, generation)

    def _open_client(self) -> AsyncBoxClient:
        if self._client is None:
            raise closed(self._cfg.slot, self._cfg.use)
        return self._client

    @contextlib.contextmanager
    def _typed(self, method: str, seconds: float) -> Iterator[None]:
        """Errors of the client as errors of the slot."""
        try:
            yield
        except ApiError as error:
            raise from_problem(error.problem, error.status, retry_after=error.retry_after) from error
        except BoxUnreachable as error:
            raise self._unreachable(error, method, seconds) from error

    async def _once(self, client: AsyncBoxClient, call: Call, method: str, seconds: float) -> httpx.Response:
        try:
            with self._typed(method, seconds):
                return await self._sent(client, call, seconds)
        except (TypeError, ValueError):  # its JSON, or a header
            raise refuse("", "holds what JSON cannot carry") from None

    async def _sent(self, client: AsyncBoxClient, call: Call, seconds: float) -> httpx.Response:
        """When its caller is cancelled, a request may still end in a second: httpcore (1.0) never frees a connection whose
        request is cancelled just after it was made, and after a hundred of them serves nobody. A body in pieces ends at once."""
        if not isinstance(call.content, bytes | None):
            return await client.send(call, wait_s=seconds)
        request = asyncio.ensure_future(client.send(call, wait_s=seconds))
        self._running.add(request)
        request.add_done_callback(self._ended)
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            await asyncio.wait({request}, timeout=LAST_SECONDS)
            raise
        finally:
            request.cancel()

    def _ended(self, request: "asyncio.Future[httpx.Response]") -> None:
        self._running.discard(request)
        if not request.cancelled():
            request.exception()

    def _unreachable(self, error: BoxUnreachable, method: str, seconds: float) -> AdapterError:
        slot, impl = self._cfg.slot, self._cfg.use
        if isinstance(error.__cause__, httpx.TimeoutException):
            return AdapterTimeout(
                f"cannot finish {slot}.{method}: the peer gave no answer within {seconds:g} s",
                slot=slot, method=method, deadline_ms=round(seconds * 1000),
            )  # fmt: skip
        return Lost(
            f"cannot reach the peer of {slot}: {type(error.__cause__).__name__}",
            retry_after=1,
            slot=slot,
            impl=impl,
            since=None,
        )

    def _made(self) -> AsyncBoxClient:
        endpoint, token = str(self._cfg.option("endpoint", "")), self._cfg.secrets.get("token", "")
        transport = transport_to(self._cfg, endpoint, kept=self._kept)
        return AsyncBoxClient(endpoint, token=token, transport=transport, ssl=_trust(self._cfg))

    def _broken(self, why: str) -> BackendError:
        return unusable(self._cfg, why)


def transport_to(cfg: SlotConfig, endpoint: str, *, kept: int) -> httpx.AsyncHTTPTransport:
    """Connections to the address of a slot, with its trust anchor. Raises BackendError for an address that may not be used."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise unusable(cfg, f"adapters.{cfg.slot}.endpoint must be the http(s) address of a box")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise unusable(cfg, "plain http is for loopback only: give the endpoint as https")
    limits = httpx.Limits(max_keepalive_connections=kept, keepalive_expiry=LIMITS.keepalive_expiry)
    return httpx.AsyncHTTPTransport(verify=_trust(cfg) or True, limits=limits)


def _trust(cfg: SlotConfig) -> ssl.SSLContext | None:
    """None where the usual anchors are enough."""
    authority = cfg.option("ca_file", "")
    return ssl.create_default_context(cafile=str(cfg.paths.at(str(authority)))) if authority else None


def unusable(cfg: SlotConfig, why: str) -> BackendError:
    """The error of a slot whose peer cannot be used as it is configured."""
    return BackendError(f"cannot use {cfg.slot}: {why}", slot=cfg.slot, impl=cfg.use)


class Lost(SlotUnavailable):
    """The connection failed: whether the peer did what was asked is unknown."""


def _call(name: str, parameters: Mapping[str, str] | None, request: Mapping[str, Any]) -> Call:
    """Raises ValidationError for what no URL and no JSON can carry."""
    try:
        return call_of(name, parameters, **request)
    except UnicodeEncodeError:
        raise refuse("", "holds a lone surrogate") from None


def is_loopback(host: str) -> bool:
    """True for an address of this machine's own, and its usual name."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
