"""Links that agents plant where a grant, a branch's source or borrowed objects are opened later lead nowhere."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.agent_host import AgentHostBox
from support.host_agents import open_orchestrator, spawn

from agentbox.adapters.orchestrator.local_process import LocalProcessOrchestrator
from agentbox.adapters.runtime.context import CallContext, as_caller
from agentbox.contracts.orchestrator import AgentSpec, RunResult
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import SpawnError

MANIFEST = """
[policies.runs-bin]
base = "sandboxed"
[[policies.runs-bin.exec]]
mode = "allow"
operations = ["run"]
patterns = ["$WORKSPACE/bin/**"]
[policies.writes-out]
base = "sandboxed"
[[policies.writes-out.fs]]
mode = "allow"
operations = ["read", "write"]
patterns = ["$WORKSPACE/out/**"]
[policies.reads-docs]
base = "minimal"
[[policies.reads-docs.fs]]
mode = "allow"
operations = ["read"]
patterns = ["$WORKSPACE/docs/**"]
[[policies.reads-docs.exec]]
mode = "allow"
operations = ["run"]
patterns = ["$TOOLCHAIN/**"]
[agents.below]
command = ["sh", "-c", "cat agent-host.token mgmt-key"]
workspace_dir = "/workspace/proj"
"""
# Run 1 plants a link and fails; run 2 tries the link's target.
CLIMBS = """
test -L "$1" || { ln -s "$2" "$1"; exit 1; }
cat "$1/secret"; : > "$1/planted"; exit 0
"""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"), manifest=MANIFEST, scale=50)
    made.start()
    yield made
    made.stop()


@pytest.fixture
async def adapter(box: AgentHostBox) -> AsyncIterator[LocalProcessOrchestrator]:
    async with open_orchestrator(box) as found:
        yield found


@pytest.fixture(autouse=True)
def admin() -> Iterator[None]:
    """An operator who may start agents in the workspace itself."""
    with as_caller(CallContext(scopes=frozenset({"admin"}))):
        yield


@pytest.fixture
def target(box: AgentHostBox) -> Path:
    """A directory of the control plane with a secret in it."""
    folder = box.paths.state_secrets
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "secret").write_text("hush")
    return folder


async def run(
    adapter: LocalProcessOrchestrator, *argv: str, profile: str = "", **more: str
) -> RunResult:
    spec = AgentSpec(
        name="x", argv=argv, profile=profile, workspace=more.get("workspace", "branch")
    )  # type: ignore[arg-type]
    return await adapter.run_once(spec, request_id=uuid7())


@pytest.mark.parametrize(("policy", "name"), [("runs-bin", "bin"), ("writes-out", "out")])
@pytest.mark.parametrize("workspace", ["direct", "branch"])
async def test_a_later_life_is_granted_no_link(
    adapter: LocalProcessOrchestrator,
    box: AgentHostBox,
    target: Path,
    policy: str,
    name: str,
    workspace: str,
) -> None:
    """(a) What run 1 makes of a granted path ends the start of run 2, by name; it can access
    nothing of the target."""
    argv = ("sh", "-c", CLIMBS, "sh", name, str(target))
    handle = await spawn(
        adapter, "c", argv=argv, profile=policy, workspace=workspace, restart="on-failure"
    )
    async with asyncio.timeout(30):
        items = [item async for item in adapter.stream(handle.agent_id)]
    with suppress(FileNotFoundError):
        (box.paths.workspace / name).unlink()
    assert b"hush" not in b"".join(item.data for item in items if item.kind == "stdout")
    assert not (target / "planted").exists()
    assert f"/{name}' is a symbolic link" in box.log.read_text(encoding="utf-8")


async def test_what_another_agent_may_read_is_no_link(
    adapter: LocalProcessOrchestrator, box: AgentHostBox, target: Path
) -> None:
    """(b) A direct agent puts a link where another one's policy grants a directory."""
    script = 'rm -rf docs; ln -s "$1" docs'
    planted = await run(
        adapter, "sh", "-c", script, "sh", str(target), profile="sandboxed", workspace="direct"
    )
    assert planted.exit.code == 0
    try:
        with pytest.raises(SpawnError, match="docs' is a symbolic link") as caught:
            await run(
                adapter, "cat", str(box.paths.workspace / "docs/secret"), profile="reads-docs"
            )
    finally:
        (box.paths.workspace / "docs").unlink()
    assert caught.value.members["stage"] == "confinement"


async def test_a_folder_that_is_there_is_still_granted(
    adapter: LocalProcessOrchestrator, box: AgentHostBox
) -> None:
    """The same policy and a directory in place of the link: readable as before."""
    (box.paths.workspace / "docs").mkdir()
    (box.paths.workspace / "docs/page").write_text("text")
    found = await run(adapter, "cat", str(box.paths.workspace / "docs/page"), profile="reads-docs")
    (box.paths.workspace / "docs/page").unlink()
    (box.paths.workspace / "docs").rmdir()
    assert (found.exit.code, found.stdout) == (0, b"text")


@pytest.mark.parametrize("workspace", ["direct", "branch"])
async def test_the_source_of_a_branch_is_no_link(
    adapter: LocalProcessOrchestrator, box: AgentHostBox, workspace: str
) -> None:
    """(c) A workspace_dir that is a link is neither copied nor worked in, wherever it leads."""
    for leads in (box.paths.run, box.paths.prefix / "etc"):
        leads.mkdir(exist_ok=True)
        (box.paths.workspace / "proj").symlink_to(leads)
        try:
            with pytest.raises(SpawnError, match="proj' is a symbolic link"):
                await spawn(adapter, "below", workspace=workspace)
        finally:
            (box.paths.workspace / "proj").unlink()


async def test_borrowed_objects_are_no_link(
    adapter: LocalProcessOrchestrator, box: AgentHostBox
) -> None:
    """(d) `.git/objects` that becomes a link after the branch was created is not granted to the
    next run."""
    paths = box.paths
    subprocess.run(["git", "init", "-q", str(paths.workspace)], check=True)
    script = 'test -e seen && { cat "$1"; exit 0; }; : > seen; until test -L "$2"; do sleep 0.02; done; exit 1'
    objects = paths.workspace / ".git/objects"
    handle = await spawn(
        adapter, "d", argv=("sh", "-c", script, "sh", str(paths.token("agent-host")), str(objects)),
        profile="sandboxed", restart="on-failure",
    )  # fmt: skip
    objects.rename(objects.with_name("kept"))
    objects.symlink_to(paths.run)
    async with asyncio.timeout(30):
        items = [item async for item in adapter.stream(handle.agent_id)]
    subprocess.run(["rm", "-rf", str(paths.workspace / ".git")], check=True)
    assert paths.token("agent-host").read_bytes() not in b"".join(item.data for item in items)
    assert "objects' is a symbolic link" in box.log.read_text(encoding="utf-8")
    assert os.path.lexists(paths.token("agent-host"))
