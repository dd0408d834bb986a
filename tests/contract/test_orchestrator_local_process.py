"""orchestrator local-process against a real agent-host."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from agentbox_testkit.contracts.orchestrator import OrchestratorContract
from agentbox_testkit.contracts.orchestrator_lab import FOREVER, new_id, spec, wait_until_async
from agentbox_testkit.wait import wait_until
from support.agent_host import AgentHostBox

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.agents.runs import home
from agentbox.client.agent_host.connection import connect
from agentbox.client.agent_host.lifecycle_consumer import consume_record
from agentbox.client.agent_host.operation_calls import agent_host_client
from agentbox.contracts.agent_host.lifecycle_record import LifecycleRecord
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import BackendError, QuotaExceeded, SpawnError, ValidationError
from agentbox.policy.limits.reserve import FILES, FILES_PER_AGENT


def _adapter(box: AgentHostBox) -> LocalProcessOrchestrator:
    return LocalProcessOrchestrator(box.slot_config(), Deps(metrics=Metrics()))


class LocalLab:
    """An agent-host below a directory of the test."""

    def __init__(self, prefix: Path, *, measured_runs: int = 160) -> None:
        self.run_counts = 240, measured_runs
        self._prefix = prefix
        self._box: AgentHostBox | None = None
        self.adapter: Any = None

    @property
    def box(self) -> AgentHostBox:
        assert self._box is not None
        return self._box

    @property
    def root_pid(self) -> int:
        return self.box.pid

    @property
    def workspace(self) -> Path:
        return self.box.paths.workspace

    async def start(
        self,
        *,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        scale: float = 1,
    ) -> Orchestrator:
        self._box = AgentHostBox(self._prefix, limits=limits, options=options, scale=scale)
        self._box.start()
        return await self._open()

    async def disconnect(self) -> None:
        await self.adapter.close()

    async def crash(self) -> None:
        self.box.kill()
        await self.adapter.close()

    async def restart(self) -> Orchestrator:
        if not self.box.running:
            self.box.start()
        return await self._open()

    async def record(self, count: int, *, acknowledge: bool = True) -> list[LifecycleRecord]:
        found: list[LifecycleRecord] = []
        enough = asyncio.Event()

        async def keep(lines: tuple[LifecycleRecord, ...]) -> None:
            found.extend(lines)
            if len(found) >= count:
                enough.set()
                if not acknowledge:
                    raise BackendError("the journal is away", slot="events", impl="test")

        following = asyncio.create_task(consume_record(self.box.paths, keep))
        async with asyncio.timeout(10):
            await enough.wait()
            if acknowledge:
                await wait_until_async(self._nothing_waits, "all lines are taken")
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return found

    async def _nothing_waits(self) -> bool:
        client, _ = await connect(self.box.paths, Deadline.after(5))
        try:
            found = await client.call("record.read", {"after": 0}, Deadline.after(5))
        finally:
            await client.close()
        return not found["items"]

    async def _open(self) -> Orchestrator:
        self.adapter = _adapter(self.box)
        await self.adapter.open(Deadline.after(5))
        found: Orchestrator = self.adapter
        return found

    async def close(self) -> None:
        if self.adapter is not None:
            await self.adapter.close()
        if self._box is not None:
            self._box.stop()


class Store:
    """Adapters on the agent-host that the tests of this file share; one that was killed is started for the next test."""

    def __init__(self, box: AgentHostBox) -> None:
        self._box = box
        self._made: list[LocalProcessOrchestrator] = []
        self.prefix = box.paths.prefix

    def make(self) -> LocalProcessOrchestrator:
        self._made.append(_adapter(self._box))
        return self._made[-1]

    async def open(self) -> LocalProcessOrchestrator:
        found = self.make()
        await found.open(Deadline.after(5))
        return found

    async def kill_backend(self) -> None:
        self._box.kill()

    async def close_all(self) -> None:
        for one in self._made:
            await one.close()


@pytest.fixture(scope="module")
def shared_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    box = AgentHostBox(tmp_path_factory.mktemp("box"))
    yield box
    box.stop()


@pytest.fixture
async def store(shared_box: AgentHostBox) -> AsyncIterator[Store]:
    if not shared_box.running:
        shared_box.start()
    made = Store(shared_box)
    yield made
    await made.close_all()


@pytest.fixture
async def adapter(store: Store) -> LocalProcessOrchestrator:
    return await store.open()


@pytest.fixture
async def lab(tmp_path: Path, full: bool) -> AsyncIterator[LocalLab]:
    made = LocalLab(tmp_path, measured_runs=600 if full else 160)
    yield made
    await made.close()


class TestLocalProcess(OrchestratorContract):
    pass


async def test_refusals_are_counted_listed_and_recorded(lab: LocalLab) -> None:
    """What another program of ours refused an agent, and a start that was refused: in the agent, in the counts of all,
    and in the record. The counts are answered as soon as they change."""
    adapter = await lab.start()
    assert isinstance(adapter, LocalProcessOrchestrator)
    handle = await adapter.spawn(spec(*FOREVER), request_id=new_id())
    before = await agent_host_client(lambda: adapter).read_denials(-1)
    assert before.totals == ()
    waiting = asyncio.create_task(
        agent_host_client(lambda: adapter).read_denials(before.revision, wait_s=30)
    )
    client, _ = await connect(lab.box.paths, Deadline.after(5))
    refusal = {
        "agent_id": handle.agent_id,
        "layer": "proxy",
        "rule": "net connect",
        "count": 3,
        "detail": "a:1",
    }
    assert await client.call("agent.denied", refusal, Deadline.after(5)) == {}
    with pytest.raises(ValidationError):
        await client.call("agent.denied", {**refusal, "count": 0}, Deadline.after(5))
    await client.close()
    async with asyncio.timeout(20):
        changed = await waiting
    assert [(row.agent, row.layer, row.rule, row.count) for row in changed.totals] == [
        ("test", "proxy", "net connect", 3)
    ]
    with pytest.raises(SpawnError):
        await adapter.spawn(
            spec(*FOREVER, profile="none-such", parent_id=handle.agent_id), request_id=new_id()
        )
    assert (await adapter.get(handle.agent_id)).denials == {"proxy": {"net connect": 3}}
    lines = [line for line in await lab.record(3) if line.type == "policy.denied"]
    assert [(line.agent_id, line.data["rule"], line.data["count"]) for line in lines] == [
        (handle.agent_id, "net connect", 3),
        (handle.agent_id, "profile", 1),
    ]
    await lab.crash()
    again = await lab.restart()
    assert (await again.get(handle.agent_id)).denials == {"proxy": {"net connect": 3}}


async def test_a_folder_that_a_killed_host_left_is_gone_after_its_next_start(tmp_path):
    """Killed between the end of an agent and the removal of its directories."""
    lab = LocalLab(tmp_path)
    adapter = await lab.start()
    handle = await adapter.spawn(spec("true"), request_id=new_id())
    folder = home.agent_dir(lab.box.paths, handle.agent_id)
    await wait_until(lambda: not folder.exists(), "it is over, and its folders are gone")
    await lab.crash()
    for path in home.create(folder):
        (path / "file").write_text("left")
    await lab.restart()
    await wait_until(lambda: not folder.exists(), "they are gone again")
    await lab.close()


async def test_no_agent_is_started_for_whom_there_are_no_open_files(tmp_path):
    """The error names the limit; running agents stay, and there is capacity again once one has
    ended."""
    lab = LocalLab(tmp_path)
    adapter = await lab.start()
    most = resource.prlimit(lab.root_pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(lab.root_pid, resource.RLIMIT_NOFILE, (FILES + FILES_PER_AGENT, most))
    first = await adapter.spawn(spec(*FOREVER), request_id=new_id())
    with pytest.raises(QuotaExceeded) as refused:
        await adapter.spawn(spec(*FOREVER), request_id=new_id())
    assert (refused.value.members["config_path"], refused.value.members["cap"]) == (
        "resources.nofile",
        1,
    )
    assert (await adapter.get(first.agent_id)).state == "running"
    await adapter.terminate(first, grace_s=0)
    assert await adapter.spawn(spec("true"), request_id=new_id())
    await lab.close()
