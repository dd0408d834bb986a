"""The orchestrator slot over a child process that speaks JSON-RPC on its pipes (O16 to O18)."""

import asyncio
import contextlib
from typing import ClassVar

from agentbox.adapters.orchestrator.bridge_process import BridgeProcess
from agentbox.adapters.orchestrator.over_rpc import RpcOrchestrator
from agentbox.adapters.runtime.adapter import Deps, SlotConfig
from agentbox.contracts.orchestrator import CONTRACT_VERSION
from agentbox.core import clock
from agentbox.core.deadline import Deadline
from agentbox.core.rpc.client import RpcClient
from agentbox.core.slot_errors import AdapterError, BackendError, ContractMismatch, SlotUnavailable
from agentbox.manifest.slot_options import BridgeOptions
from agentbox.sandbox.errors import SpawnFailed

_SHUTDOWN_SECONDS = 0.5  # for the shutdown request
_EXIT_SECONDS = 1.0  # for the exit: the state machine allows an adapter 2.5 s to close


class ExternalStdioOrchestrator(RpcOrchestrator):
    """`command` is the child process. If it exits or sends an invalid line, the instance is `down`
    and the slot's state machine starts a new one after at least 1 s."""

    cfg: SlotConfig[BridgeOptions]
    impl: ClassVar[str] = "external-stdio"
    min_retry_seconds = 1.0
    peer = "the bridge"

    def __init__(self, cfg: SlotConfig[BridgeOptions], deps: Deps) -> None:
        super().__init__(cfg, deps)
        self._child: BridgeProcess | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The pid of the child; 0 while there is none."""
        return self._child.pid if self._child else 0

    async def open(self, deadline: Deadline) -> None:
        """Start the child and initialise it. Raises SlotUnavailable, ContractMismatch,
        AdapterTimeout or BackendError."""
        child = self._child = BridgeProcess()
        try:
            await self._start(child)
            client = RpcClient(
                child.reader,
                child.writer,
                self.impl,
                peer=self.peer,
                on_dropped=self.deps.metrics.dropped_replies.inc,
            )
            self._client = client
            self._watcher = asyncio.create_task(_kill_when_lost(client, child), name="bridge-watch")
            params = {"contract_version": CONTRACT_VERSION, "bounds": {"limits": self.cfg.limits}}
            self._accept_hello(await client.call("initialize", params, deadline))
        except BaseException:
            await self.close()
            raise

    async def _start(self, child: BridgeProcess) -> None:
        try:
            await child.start(self.cfg)
        except SpawnFailed as error:
            raise SlotUnavailable(
                f"cannot start the bridge: {error.message}",
                hint="check adapters.orchestrator.command",
                slot=self.slot,
                impl=self.impl,
                since=clock.to_wire(self.deps.clock.now()),
            ) from error

    def _accept_hello(self, hello: object) -> None:
        if not isinstance(hello, dict) or not isinstance(hello.get("capabilities"), list):
            raise BackendError(
                "cannot use orchestrator: the bridge sent an invalid initialize response",
                slot=self.slot,
                impl=self.impl,
            )
        peer_version = str(hello.get("contract_version", ""))
        if peer_version.partition(".")[0] != CONTRACT_VERSION.partition(".")[0]:
            mismatch = {"slot": self.slot, "ours": CONTRACT_VERSION, "theirs": peer_version}
            raise ContractMismatch(
                f"cannot use orchestrator: the bridge has contract {peer_version}",
                mismatches=[mismatch],
            )
        self.capabilities = frozenset(map(str, hello["capabilities"]))
        self.exclusive = "detached" not in self.capabilities

    async def close(self) -> None:
        client, self._client = self._client, None
        child, self._child = self._child, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            await asyncio.wait({watcher})
        try:
            if client is not None:
                with contextlib.suppress(AdapterError):
                    await client.call("shutdown", {}, Deadline.after(_SHUTDOWN_SECONDS))
                await client.close()
        finally:
            if child is not None:
                await child.close(_EXIT_SECONDS if client is not None else 0)


async def _kill_when_lost(client: RpcClient, child: BridgeProcess) -> None:
    """Kill a child that sent an invalid message or closed its stdout."""
    await client.wait_lost()
    child.kill()
