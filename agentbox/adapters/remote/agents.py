"""Agents of another box over its API, as used by the bridge."""

import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import ClassVar

from agentbox.adapters.runtime import context
from agentbox.adapters.runtime.adapter import Adapter, Deps, Health, Page, SlotConfig
from agentbox.adapters.runtime.box_peer import BoxPeer, RepeatingPeer
from agentbox.adapters.runtime.http_connection import ReplyLost
from agentbox.adapters.runtime.input_checks import check_range
from agentbox.client.async_client.agents import AsyncAgentsClient
from agentbox.client.async_client.attach import AsyncAttached
from agentbox.client.errors import ApiError, BoxUnreachable
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
from agentbox.core.slot_errors import AdapterError, from_problem
from agentbox.manifest.slot_options import HttpOptions

IDLE_TIMEOUT = 10.0  # seconds without a connection after which a stream fails


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
        info = await self._remote().spawn(spec, input=stdin, request_id=_request_key(request_id))
        return AgentHandle(agent_id=info.agent_id, generation=1)

    async def list(
        self, filter: AgentFilter = ALL, *, limit: int = 100, cursor: str | None = None
    ) -> Page[AgentInfo]:
        check_range(limit, "/limit", LIMIT)
        return await self._remote().list(**filter.to_wire(), limit=limit, cursor=cursor)

    async def get(self, agent_id: str) -> AgentInfo:
        return await self._remote().get(agent_id)

    async def signal(self, handle: AgentHandle, signal: Signal) -> None:
        await self._remote().signal(handle.agent_id, handle.generation, signal)

    async def revoke(self, agent_id: str, grant_id: str) -> AgentInfo:
        return await self._remote().revoke(agent_id, grant_id)

    async def terminate(self, handle: AgentHandle, *, grace_s: float | None = None) -> ExitRecord:
        return await self._remote().terminate(handle.agent_id, handle.generation, grace_s=grace_s)

    def stream(
        self, agent_id: str, *, since: int = 0, follow: bool = True, attached: bool = False
    ) -> AsyncIterator[StreamItem]:
        return self._remote().stream(
            agent_id, since=since, follow=follow, reconnect_timeout=IDLE_TIMEOUT
        )

    async def attach(self, handle: AgentHandle) -> Attachment:
        return _Attachment(await self._peer().attach(handle.agent_id, handle.generation))

    async def run_once(
        self,
        spec: AgentSpec,
        *,
        request_id: str,
        stdin: bytes = b"",
        timeout_s: float = 600,
        max_output: int = 1 << 20,
    ) -> RunResult:
        return await AsyncAgentsClient(RepeatingPeer(self._peer())).run_once(
            spec,
            request_id=_request_key(request_id),
            stdin=stdin,
            timeout_s=timeout_s,
            max_output=max_output,
        )

    def _peer(self) -> BoxPeer:
        return self._peers[-1 if "admin" in context.current().scopes else 0]

    def _remote(self) -> AsyncAgentsClient:
        return AsyncAgentsClient(self._peer())


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
