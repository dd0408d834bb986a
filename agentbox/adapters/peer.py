"""The connection of an external-http slot to the API of another box: its errors, its retries, its contract version."""

import asyncio
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
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
from agentbox.client.calls import Call, call_of
from agentbox.client.errors import ApiError, BoxUnreachable

TRIES = 3  # of a call that may be sent twice (slots.md 4)
PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 10.0


class Peer:
    """One box, as a slot sees it. Only typed errors come out; none holds the token."""

    def __init__(self, cfg: SlotConfig) -> None:
        self._cfg = cfg
        self._client: AsyncBoxClient | None = None

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
        """Ends the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def send(
        self, name: str, parameters: Mapping[str, str] | None = None, *, method: str,
        again: bool = True, **request: Any,
    ) -> httpx.Response:  # fmt: skip
        """The answer of a route. `method` is that of the slot, for errors; a call that may be sent twice is sent `again`
        after a connection error. Raises what the peer answers as the same typed error."""
        if self._client is None:
            raise closed(self._cfg.slot, self._cfg.use)
        call = _call(name, parameters, request)
        seconds = float(self._cfg.option("timeout_seconds", TIMEOUT_SECONDS))
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

    async def _once(self, client: AsyncBoxClient, call: Call, method: str, seconds: float) -> httpx.Response:
        try:
            return await client.send(call, wait_s=seconds)
        except (TypeError, ValueError):  # its JSON, or a header
            raise refuse("", "holds what JSON cannot carry") from None
        except ApiError as error:
            raise from_problem(error.problem, error.status, retry_after=error.retry_after) from error
        except BoxUnreachable as error:
            raise self._unreachable(error, method, seconds) from error

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
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise self._broken(f"adapters.{self._cfg.slot}.endpoint must be the http(s) address of a box")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise self._broken("plain http is for loopback only: give the endpoint as https")
        authority = self._cfg.option("ca_file", "")
        transport = None
        if authority:
            context = ssl.create_default_context(cafile=str(self._cfg.paths.at(str(authority))))
            transport = httpx.AsyncHTTPTransport(verify=context)
        return AsyncBoxClient(endpoint, token=token, transport=transport)

    def _broken(self, why: str) -> BackendError:
        return BackendError(f"cannot use {self._cfg.slot}: {why}", slot=self._cfg.slot, impl=self._cfg.use)


class Lost(SlotUnavailable):
    """The connection failed: whether the peer did what was asked is unknown."""


def _call(name: str, parameters: Mapping[str, str] | None, request: Mapping[str, Any]) -> Call:
    """Raises ValidationError for what no URL and no JSON can carry."""
    try:
        return call_of(name, parameters, **request)
    except UnicodeEncodeError:
        raise refuse("", "holds a lone surrogate") from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
