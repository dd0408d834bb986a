"""Files of a sandbox, on a real agent-host."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.agent_host import AgentHostBox
from support.host_sandboxes import create, get, put, sh

from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.slot_errors import (
    FileTooLarge,
    NotFound,
    PathOutside,
    SandboxOver,
    ValidationError,
)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"), manifest='[sandboxes]\nmax_file = "4KiB"\n')
    made.start()
    yield made
    made.stop()


@pytest.mark.limit("max_file")
async def test_files_of_a_sandbox(host: AgentHost, box: AgentHostBox) -> None:
    """Written, read by programs and back, replaced with its mode, removed; one that is too large is
    refused."""
    one = await create(host)
    await put(host, one, "workspace/new/dir/file", b"1", b"23")
    assert (await sh(host, one, "cat new/dir/file; chmod 755 new/dir/file")).stdout == b"123"
    await put(host, one, "/workspace/new/dir/file", b"4")
    assert (await sh(host, one, "stat -c %a new/dir/file; echo 5 > $TMPDIR/t")).stdout == b"755\n"
    assert await get(host, one, "tmp/t") == b"5\n"
    part = await host.read_sandbox_file(one, "workspace/new/dir/file", offset=1, size=9)
    assert (part.data, part.size) == (b"", 1)
    await host.remove_sandbox_file(one, "workspace/new/dir/file")
    await host.remove_sandbox_file(one, "workspace/new/dir")
    for path in ("workspace/new/dir/file", "workspace/none"):
        with pytest.raises(NotFound):
            await get(host, one, path)
    with pytest.raises(FileTooLarge):
        await put(host, one, "workspace/large", b"x" * 3000, b"x" * 3000)
    await sh(host, one, "head -c 5000 /dev/zero > large; mkfifo pipe; mkdir -p full/x")
    with pytest.raises(FileTooLarge):
        await get(host, one, "workspace/large")
    for path in ("workspace/pipe", "workspace/full", "workspace", "workspace/a\0b"):
        with pytest.raises(ValidationError):
            await get(host, one, path)
    with pytest.raises(ValidationError):
        await host.remove_sandbox_file(one, "workspace/full")
    assert list(box.paths.workspace.glob("new")) == []
    await host.end_sandbox(one, grace_s=0)
    with pytest.raises(SandboxOver):
        await get(host, one, "tmp/t")


async def test_file_calls_follow_no_link_of_a_program(host: AgentHost, tmp_path: Path) -> None:
    """Nor do they leave the two directories by any path."""
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.write_text("s")
    target.mkdir()
    one = await create(host)
    planted = (
        f"ln -s {secret} link; ln -s {target} dir; ln -s /proc/self/root root; ln -s ../../.. up"
    )
    await sh(host, one, planted)
    outside = (
        *("workspace/link", "workspace/dir/x", "workspace/root/etc/passwd", "workspace/up/x"),
        *("workspace/../tmp/x", "home/x", "", "..", "etc/passwd", "workspace/a/../../x"),
    )
    for path in outside:
        with pytest.raises(PathOutside):
            await get(host, one, path)
    for path in ("workspace/dir/x", "workspace/root/tmp/x", "workspace/dir/y/z", "home/x"):
        with pytest.raises(PathOutside):
            await put(host, one, path, b"x")
        with pytest.raises(PathOutside):
            await host.remove_sandbox_file(one, path)
    await put(host, one, "workspace/link", b"replaced")
    assert await get(host, one, "workspace/link") == b"replaced"
    await host.remove_sandbox_file(one, "workspace/dir")
    assert (secret.read_text(), list(target.iterdir())) == ("s", [])


async def test_a_reader_has_no_branch_to_write(host: AgentHost, box: AgentHostBox) -> None:
    """Its workspace is the operator's own: only its temporary directory is open to file calls."""
    one = await create(host, profile="readonly")
    await put(host, one, "tmp/x", b"1")
    for path in ("workspace/x", "workspace"):
        with pytest.raises(PathOutside):
            await put(host, one, path, b"1")
    assert not (box.paths.workspace / "x").exists()
