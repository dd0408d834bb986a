"""orchestrator external-stdio over the shipped bridge, serving agents of its own."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.orchestrator import OrchestratorContract
from support.bridge_box import BridgeBox, crash

from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord

pytestmark = pytest.mark.asyncio(loop_scope="module")


class StdioLab:
    """A box of the test."""

    run_counts = (240, 600)

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self.adapter: Any = None
        self.box: Any = None

    @property
    def root_pid(self) -> int:
        return int(self.adapter.pid)

    @property
    def workspace(self) -> Path:
        return Path(self.box.paths.workspace)

    async def start(
        self,
        *,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        scale: float = 1,
    ) -> Any:
        self.box = BridgeBox(self._prefix, limits=limits, options=options, scale=scale)
        return await self.restart()

    async def disconnect(self) -> None:
        await self.adapter.close()

    async def crash(self) -> None:
        crash(self.adapter)
        await self.adapter.close()

    async def restart(self) -> Any:
        self.adapter = await self.box.open()
        return self.adapter

    async def record(self, count: int, *, acknowledge: bool = True) -> list[LifecycleRecord]:
        found: list[LifecycleRecord] = []
        async with asyncio.timeout(10):
            while len(found) < count:
                after = found[-1].seq if acknowledge and found else 0
                rows = [
                    *await agent_host_client(lambda: self.adapter).read_record(after, wait_s=0.1)
                ]
                found = [*found, *rows] if acknowledge else rows
        if acknowledge:
            assert await agent_host_client(lambda: self.adapter).read_record(found[-1].seq) == ()
        return found

    async def close(self) -> None:
        if self.adapter is not None:
            await self.adapter.close()


class Store:
    """Adapters on the box that the tests of this file share. A child has the box for itself, so the one that tests share
    is closed before a test opens its own."""

    def __init__(self, box: BridgeBox) -> None:
        self._box = box
        self._shared: Any = None
        self._made: list[Any] = []
        self.prefix = box.paths.prefix

    def make(self) -> Any:
        return self._box.make()

    async def open(self) -> Any:
        await self._drop_shared()
        self._made.append(await self._box.open())
        return self._made[-1]

    async def shared(self) -> Any:
        await self.end()
        if self._shared is None or (await self._shared.health()).state != "ok":
            await self._drop_shared()
            self._shared = await self._box.open()
        return self._shared

    async def kill_backend(self) -> None:
        crash(self._shared)

    async def end(self) -> None:
        for one in self._made:
            await one.close()
        self._made.clear()

    async def _drop_shared(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.close()

    async def close(self) -> None:
        await self.end()
        await self._drop_shared()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def all_tests(tmp_path_factory):
    made = Store(BridgeBox(tmp_path_factory.mktemp("box")))
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def store(all_tests):
    yield all_tests
    await all_tests.end()


@pytest_asyncio.fixture(loop_scope="module")
async def adapter(store):
    return await store.shared()


@pytest_asyncio.fixture(loop_scope="module")
async def lab(tmp_path):
    made = StdioLab(tmp_path)
    yield made
    await made.close()


@pytest.mark.transport
class TestExternalStdio(OrchestratorContract):
    pass
