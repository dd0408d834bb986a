"""Agents of another box over its API, as used by the bridge."""

import contextlib
import hashlib
import json
from collections.abc import AsyncIterator
from typing import ClassVar

import httpx

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.box_peer import BoxPeer
from agentbox.adapters.runtime.checks import check_range
from agentbox.adapters.runtime.http_connection import ReplyLost
from agentbox.client import agent_calls
from agentbox.client.async_client.attach import AsyncAttached
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import Call
from agentbox.contracts.orchestrator import (
    ALL,
    LIMIT,
    AgentFilter,
    AgentHandle,
    AgentInfo,
    AgentSpec,
    Attachment,
    ExitRecord,
    RunResult,
    Signal,
    StreamItem,
)
from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import from_wire
from agentbox.core.slot_errors import AdapterError, NotFound, from_problem
from agentbox.manifest.slot_options import HttpOptions

IDLE_TIMEOUT = 10.0  # seconds without a connection after which a stream fails
_MAX_GRACE_SECONDS = 60.0  # the longest grace period of the other box, in seconds
_MARGIN_SECONDS = agent_calls.EXTRA_WAIT_SECONDS
# path segments that clients and proxies drop or resolve; never an agent id
_INVALID_IDS = (
    "",
    ".",
    "..",
)


class HttpOrchestrator(Adapter):
    """`endpoint` is the address of the other box; the secret `token` is one of that box with the
    scopes agents:read and agents:write. The limits of that box apply. The token of `admin` is used
    for local callers with scope admin."""

    slot = "orchestrator"
    impl: ClassVar[str] = "over-http"

    def __init__(
        self,
        cfg: SlotConfig[HttpOptions],
        deps: Deps,
        *,
        admin: SlotConfig[HttpOptions] | None = None,
    ) -> None:
        super().__init__(cfg, deps)
        self._peers = [
            BoxPeer(peer_cfg, max_idle=4) for peer_cfg in (cfg, admin) if peer_cfg is not None
        ]
        self.capabilities = frozenset({"attach", "detached", "restart", "run_once", "stream"})
        if admin is not None:
            self.capabilities |= {"limits.raise"}

    async def open(self, deadline: Deadline) -> None:
        try:
            for peer in self._peers:
                await peer.open(self.contract_version)
            await self.list(limit=1)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        for peer in self._peers:
            await peer.close()

    async def health(self) -> Health:
        """Query the peer's slot."""
        try:
            await self.list(limit=1)
        except AdapterError as error:
            return self.health_is("down", error.message)
        return self.health_is("ok", "the host responds")

    async def spawn(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes | None = None,
        attached: bool = False,
    ) -> AgentHandle:
        """Return the first handle of the request: generation 1, even if the agent was restarted
        since. Output does not wait for a reader (no capability `backpressure`)."""
        call = agent_calls.spawn_agent(spec.to_wire(), _request_key(request_id), stdin)
        info = AgentInfo.from_wire((await self._send(call, "spawn")).json())
        return AgentHandle(agent_id=info.handle.agent_id, generation=1)

    async def list(
        self, filter: AgentFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[AgentInfo]:
        check_range(limit, "/limit", LIMIT)
        response = await self._send(
            agent_calls.list_agents(limit, cursor, **filter.to_wire()), "list"
        )
        return from_wire(Page[AgentInfo], response.json())

    async def get(self, agent_id: str) -> AgentInfo:
        return AgentInfo.from_wire(
            (await self._send(agent_calls.get_agent(_checked_id(agent_id)), "get")).json()
        )

    async def signal(self, handle: AgentHandle, signal: Signal) -> None:
        await self._send(
            agent_calls.signal_agent(_checked_id(handle.agent_id), handle.generation, signal),
            "signal",
            idempotent=False,
        )

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        call = agent_calls.revoke_grant(_checked_id(agent_id), _checked_id(grant_id))
        return AgentInfo.from_wire((await self._send(call, "revoke")).json())

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None = None) -> ExitRecord:
        call = agent_calls.terminate_agent(_checked_id(handle.agent_id), handle.generation, grace_s)
        response = await self._send(
            call,
            "terminate",
            seconds=(_MAX_GRACE_SECONDS if grace_s is None else grace_s) + _MARGIN_SECONDS,
        )
        return ExitRecord.from_wire(response.json())

    async def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, attached: bool = False
    ) -> AsyncIterator[StreamItem]:
        events = self._peer().events(
            "stream_agent",
            {"id": _checked_id(agent_id)},
            method="stream",
            query={"follow": str(follow).lower()},
            since=str(since) if since else "",
            idle_timeout=IDLE_TIMEOUT,
        )
        async with contextlib.aclosing(events) as items:  # type: ignore[type-var]
            async for event in items:
                yield StreamItem.from_wire(json.loads(event.data))

    async def attach(self, handle: AgentHandle) -> Attachment:
        return _Attachment(
            await self._peer().attach(_checked_id(handle.agent_id), handle.generation)
        )

    async def run_once(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes = b"",
        timeout_s: float = 600,
        max_output: int = 1 << 20,
    ) -> RunResult:
        call = agent_calls.run_once(
            spec.to_wire(), _request_key(request_id), stdin, timeout_s, max_output
        )
        return RunResult.from_wire(
            (await self._send(call, "run_once", seconds=timeout_s + 2 * _MARGIN_SECONDS)).json()
        )

    def _peer(self) -> BoxPeer:
        return self._peers[-1 if "admin" in context.current().scopes else 0]

    async def _send(
        self, call: Call, method: str, *, idempotent: bool = True, seconds: float | None = None
    ) -> httpx.Response:
        """Idempotent calls are retried: a request id creates one agent, and an agent ends once."""
        return await self._peer().send_call(
            call, method=method, idempotent=idempotent, seconds=seconds
        )


class _Attachment:
    """The socket with the errors of the slot."""

    def __init__(self, attached: AsyncAttached) -> None:
        self._attached = attached

    async def send(self, data: bytes) -> None:
        with _translate_errors():
            await self._attached.send(data)

    async def close_stdin(self) -> None:
        with _translate_errors():
            await self._attached.close_stdin()

    async def aclose(self) -> None:
        await self._attached.aclose()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translate_errors():
            async for chunk in self._attached:
                yield chunk


@contextlib.contextmanager
def _translate_errors():  # type: ignore[no-untyped-def]
    try:
        yield
    except ApiError as error:
        raise from_problem(error.problem, error.status) from error
    except BoxUnreachable as error:
        raise ReplyLost(
            error.message, retry_after=1, slot="orchestrator", impl="over-http", since=None
        ) from error


def _request_key(request_id: str) -> str:
    """The other box sees a single principal, that of the token; so the key includes the local
    principal."""
    return hashlib.sha256(
        f"{context.current().principal}\0{request_id}".encode("utf-8", "surrogatepass")
    ).hexdigest()


def _checked_id(agent_id: str) -> str:
    """Raises NotFound for ids that cannot be path segments."""
    if agent_id in _INVALID_IDS:
        raise NotFound("cannot find this agent", resource="agent", id=agent_id)
    return agent_id
