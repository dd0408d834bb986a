"""The connection of an external-http slot to the API of another box: errors, retries and contract
version."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.adapters.runtime.http_connection import (
    MAX_ATTEMPTS,
    OPEN_SECONDS,
    RETRY_PAUSE_SECONDS,
    PendingRequests,
    ReplyLost,
    create_transport,
    reply_lost,
    reply_timeout,
    ssl_context_of,
    unusable_slot,
)
from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.request_lines import REQUEST_LINES
from agentbox.client.transport import Call, build_call
from agentbox.contracts.routes.request_line import NotASegment
from agentbox.core.http.sse_parser import SseEvent
from agentbox.core.ids import traceparent
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import AdapterError, ContractMismatch, NotFound, from_problem
from agentbox.core.storage.sqlite import closed_error
from agentbox.manifest.slot_options import HttpOptions
from agentbox.policy.outgoing import Outgoing

if TYPE_CHECKING:
    from agentbox.client.async_client.attach import AsyncAttached

_KINDS = {"beads": "bead", "orchestrator": "agent"}  # what ids of a slot are of


class BoxPeer:
    """A client of one box. It raises typed errors only; none contains the token."""

    def __init__(self, cfg: SlotConfig[HttpOptions], *, max_idle: int = 20) -> None:
        """`max_idle` is the number of idle connections that stay open."""
        self._cfg, self._max_idle = cfg, max_idle
        self._client: AsyncBoxClient | None = None
        self._requests = PendingRequests()

    async def open(self, contract_version: str) -> None:
        """Connect. Raises ContractMismatch if the major version of the slot's contract differs, and
        BackendError if the address is not allowed."""
        client = self._create_client()
        try:
            response = await self._send_once(client, build_call("meta"), "open", OPEN_SECONDS)
            peer_version = str(response.json()["adapters"][self._cfg.slot]["contract_version"])
            if peer_version.partition(".")[0] != contract_version.partition(".")[0]:
                mismatch = {
                    "slot": self._cfg.slot,
                    "ours": contract_version,
                    "theirs": peer_version,
                }
                raise ContractMismatch(
                    f"cannot use {self._cfg.slot} of the peer: its contract is {peer_version}",
                    mismatches=[mismatch],
                )
        except BaseException as error:
            await client.aclose()
            if isinstance(error, (KeyError, TypeError, ValueError)):
                raise unusable_slot(self._cfg, "the endpoint is not an agentbox") from error
            raise
        self._client = client

    async def close(self) -> None:
        """Close the connections and cancel pending requests."""
        client, self._client = self._client, None
        await self._requests.cancel_all()
        if client is not None:
            await client.aclose()

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
        idempotent: bool | None = None,
    ) -> httpx.Response:
        """Call an operation. An idempotent one is retried after a connection error; `idempotent`
        overrides its table. Raises an error response as the same typed error, and NotFound for an
        id that cannot be a path segment."""
        try:
            call = build_call(name, parameters, query=query, body=body, headers=headers)
        except UnicodeEncodeError:
            raise invalid_value("", "contains a lone surrogate") from None
        except NotASegment as error:
            kind = _KINDS.get(self._cfg.slot, self._cfg.slot)
            raise NotFound(f"cannot find this {kind}", resource=kind, id=error.value) from error
        return await self.send(call, accepted=accepted, wait_s=wait_s, idempotent=idempotent)

    async def send(
        self,
        call: Call,
        *,
        accepted: tuple[int, ...] = (),
        wait_s: float | None = None,
        idempotent: bool | None = None,
    ) -> httpx.Response:
        """Send a prepared call like `request`. `wait_s` is how long the operation may take; None =
        `timeout_seconds`. The current trace is passed to the peer."""
        if self._client is None:
            raise closed_error(self._cfg.slot, self._cfg.use)
        if trace := context.current().trace_id:
            call = replace(call, headers={**call.headers, "traceparent": traceparent(trace)})
        line = REQUEST_LINES[call.name]
        repeatable = line.idempotent if idempotent is None else idempotent
        limit = float(self._cfg.options.timeout_seconds)
        seconds = limit if wait_s is None else wait_s + OPEN_SECONDS
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._send_once(self._client, call, line.operation, seconds, accepted)
            except ReplyLost as error:
                if not repeatable or attempt == MAX_ATTEMPTS:
                    raise
                await asyncio.sleep(RETRY_PAUSE_SECONDS * attempt)
                if self._client is None:
                    raise closed_error(self._cfg.slot, self._cfg.use) from error
        raise AssertionError("the last try returned or raised")

    async def stream(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        last: str = "",
        reconnect_timeout: float = 60.0,
    ) -> AsyncIterator[SseEvent]:
        """Yield the events of a streaming operation exactly once, across reconnects, until
        `reconnect_timeout` seconds pass without a connection."""
        client = self._require_client()
        with self._translate_errors(REQUEST_LINES[name].operation, reconnect_timeout):
            async for event in client.stream(
                name, parameters, query=query, last=last, reconnect_timeout=reconnect_timeout
            ):
                yield event

    async def attach(self, agent_id: str, generation: int) -> "AsyncAttached":
        """Attach to the pipes of an agent of the peer."""
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
        """Attach to the pipes behind an operation of the peer that is a WebSocket."""
        with self._translate_errors("attach", OPEN_SECONDS):
            return await self._require_client().open_socket(name, parameters, query=query)

    def _require_client(self) -> AsyncBoxClient:
        if self._client is None:
            raise closed_error(self._cfg.slot, self._cfg.use)
        return self._client

    @contextlib.contextmanager
    def _translate_errors(self, method: str, seconds: float) -> Iterator[None]:
        """Translate client errors into slot errors."""
        try:
            yield
        except ApiError as error:
            raise from_problem(
                error.problem, error.status, retry_after=error.retry_after
            ) from error
        except BoxUnreachable as error:
            raise self._unreachable_error(error, method, seconds) from error

    async def _send_once(
        self,
        client: AsyncBoxClient,
        call: Call,
        method: str,
        seconds: float,
        accepted: tuple[int, ...] = (),
    ) -> httpx.Response:
        try:
            with self._translate_errors(method, seconds):
                return await self._transmit(client, call, seconds, accepted)
        except (TypeError, ValueError):  # from JSON encoding or a header
            raise invalid_value("", "contains values that JSON cannot represent") from None

    async def _transmit(
        self, client: AsyncBoxClient, call: Call, seconds: float, accepted: tuple[int, ...]
    ) -> httpx.Response:
        """Send the call. A streamed body is cancelled together with its caller."""
        exchange = client.send(call, accepted=accepted, wait_s=seconds)
        return await (
            exchange
            if not isinstance(call.content, bytes | None)
            else self._requests.finish(exchange)
        )

    def _unreachable_error(
        self, error: BoxUnreachable, method: str, seconds: float
    ) -> AdapterError:
        if isinstance(error.__cause__, httpx.TimeoutException):
            return reply_timeout(self._cfg, method, seconds)
        return reply_lost(self._cfg, type(error.__cause__).__name__)

    def _create_client(self) -> AsyncBoxClient:
        endpoint, token = self._cfg.options.endpoint, self._cfg.secrets.get("token", "")
        transport = create_transport(self._cfg, endpoint, max_idle=self._max_idle)
        return AsyncBoxClient(
            endpoint,
            token=token,
            transport=transport,
            ssl=ssl_context_of(self._cfg),
            proxy=Outgoing.read(self._cfg.paths).proxy_for(endpoint),
        )


class RepeatingPeer:
    """A peer whose every call is repeated after a lost reply. For calls that have one effect, since
    they contain a key or a lease."""

    def __init__(self, peer: BoxPeer) -> None:
        self._peer = peer
        self.stream, self.attach, self.open_socket = peer.stream, peer.attach, peer.open_socket

    async def request(
        self, name: str, parameters: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        """As `BoxPeer.request`."""
        return await self._peer.request(name, parameters, idempotent=True, **options)
