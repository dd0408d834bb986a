"""The connection of an external-http slot to the API of another box: its errors, its retries, its contract version."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx

from agentbox.adapters.runtime import context
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
    trust_of,
    unusable,
)
from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import Call, call_of
from agentbox.core.http.sse_parser import SseEvent
from agentbox.core.ids import traceparent
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import AdapterError, ContractMismatch, from_problem
from agentbox.core.storage.sqlite import closed

if TYPE_CHECKING:
    from agentbox.client.attach import AsyncAttached


class Peer:
    """One box, as a slot sees it. Only typed errors come out; none holds the token."""

    def __init__(self, cfg: SlotConfig, *, kept: int = 20) -> None:
        """`kept` connections stay open while nothing is asked."""
        self._cfg, self._kept = cfg, kept
        self._client: AsyncBoxClient | None = None
        self._requests = Requests()

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
                raise unusable(self._cfg, "the endpoint answers, but it is no agentbox") from error
            raise
        self._client = made

    async def close(self) -> None:
        """Ends the connections, and what is still asked on them."""
        client, self._client = self._client, None
        await self._requests.end()
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
        """As `send`, for a request that is made already; `seconds` in place of `timeout_seconds`. The peer's events have the
        trace of ours."""
        if self._client is None:
            raise closed(self._cfg.slot, self._cfg.use)
        if trace := context.current().trace_id:
            call = replace(call, headers={**call.headers, "traceparent": traceparent(trace)})
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
        """A body in pieces ends with its caller at once."""
        sending = client.send(call, wait_s=seconds)
        return await (sending if not isinstance(call.content, bytes | None) else self._requests.finish(sending))

    def _unreachable(self, error: BoxUnreachable, method: str, seconds: float) -> AdapterError:
        if isinstance(error.__cause__, httpx.TimeoutException):
            return late(self._cfg, method, seconds)
        return lost(self._cfg, type(error.__cause__).__name__)

    def _made(self) -> AsyncBoxClient:
        endpoint, token = str(self._cfg.option("endpoint", "")), self._cfg.secrets.get("token", "")
        transport = transport_to(self._cfg, endpoint, kept=self._kept)
        return AsyncBoxClient(endpoint, token=token, transport=transport, ssl=trust_of(self._cfg))


def _call(name: str, parameters: Mapping[str, str] | None, request: Mapping[str, Any]) -> Call:
    """Raises ValidationError for what no URL and no JSON can carry."""
    try:
        return call_of(name, parameters, **request)
    except UnicodeEncodeError:
        raise refuse("", "holds a lone surrogate") from None
