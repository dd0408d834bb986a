"""A path opened ahead is used for a grant only where opening it now would give the same."""

import asyncio
import os
from pathlib import Path

import pytest
from agentbox_testkit.wait import wait_until

from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.path_opener import Boundary, OpenDenied, Opener
from agentbox.core.linux.preopened_paths import PreopenedPaths
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import tree
from agentbox.sandbox.launcher.client import LauncherClient
from agentbox.sandbox.launcher.preopened import system_paths
from agentbox.sandbox.spec import Launch


def test_a_path_that_leads_elsewhere_is_opened_anew(tmp_path: Path) -> None:
    """A replaced file, a removed one, a link in place of a directory."""
    for name in ("replaced", "gone", "same"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    ahead = PreopenedPaths(
        str(tmp_path / name) for name in ("replaced", "gone", "same", "folder", "never")
    )
    (tmp_path / "new").touch()
    (tmp_path / "new").rename(tmp_path / "replaced")
    (tmp_path / "gone").unlink()
    (tmp_path / "folder").rmdir()
    (tmp_path / "folder").symlink_to("/etc")
    found = {
        name
        for name in ("replaced", "gone", "same", "folder", "never")
        if ahead.find(str(tmp_path / name))
    }
    assert found == {"same"}


def test_a_number_that_is_another_files_by_now_is_not_taken(tmp_path: Path) -> None:
    """A process that closes descriptors closes these too: the grant would be for what was opened
    there since."""
    (tmp_path / "file").touch()
    ahead = PreopenedPaths([str(tmp_path / "file")])
    (number,) = ahead.descriptors
    os.close(number)
    assert ahead.find(str(tmp_path / "file")) is None
    other = os.open("/etc", os.O_PATH)
    try:
        os.dup2(other, number)
        assert ahead.find(str(tmp_path / "file")) is None
    finally:
        os.close(other)
        os.close(number)


@pytest.mark.parametrize("written", ["/", "/usr", "/usr/lib", "/etc", "/dev"])
def test_nothing_is_taken_where_somebody_writes_on_the_way(written: str) -> None:
    """To it, or to a link that leads to it; nor where other links are followed."""
    assert system_paths().is_safe_within(Boundary(writable=("/workspace", "/tmp", "/dev/shm")))
    assert not system_paths().is_safe_within(Boundary(writable=("/workspace", written)))
    assert not system_paths().is_safe_within(Boundary(link_roots=("/usr",)))


def test_what_shows_a_closed_place_is_refused(tmp_path: Path) -> None:
    """As where it is opened at the start."""
    (tmp_path / "system/state").mkdir(parents=True)
    path, state = str(tmp_path / "system"), str(tmp_path / "system/state")
    place, inner = PreopenedPaths([path]).find(path), PreopenedPaths([state]).find(state)
    assert place is not None
    assert inner is not None
    with Opener(Boundary(protected=(state,))) as opener:
        with pytest.raises(OpenDenied, match="shows"):
            opener.check(path, place)
        with pytest.raises(OpenDenied, match="belongs to the control plane"):
            opener.check(state, inner)
    with Opener(Boundary(protected=(path,), exempt=(state,))) as opener:
        assert opener.check(state, inner) is inner


async def test_an_agent_has_no_descriptor_of_it(tmp_path: Path) -> None:
    """With either filter: the usual one, which exists before its command, or another. Its limits
    still apply."""
    grants = (
        *(PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin")),
        PathRule("/proc", "rl"),
    )
    script = "for one in /proc/$$/fd/*; do echo ${one##*/}; done"
    launcher = LauncherClient()
    launcher.start()
    assert launcher.pid is not None
    root = launcher.pid
    try:
        for pids, ports in ((8, ()), (0, ()), (8, None), (8, ())):
            await wait_until(
                lambda: len(tree.descendants(tree.scan(), [root])) >= 2, "a pair waits"
            )
            agent = await launcher.spawn(
                Launch(
                    argv=("/bin/sh", "-c", script), env={}, cwd=str(tmp_path), roots=(str(tmp_path.resolve()),), pids=pids,
                    cpu=1, confinement=Confinement(grants=grants, ports=ports),
                )
            )  # fmt: skip
            async with asyncio.timeout(10):
                assert (await agent.ended).code == 0
            with os.fdopen(os.dup(agent.stdout)) as said:
                assert set(said.read().split()) <= {
                    "0",
                    "1",
                    "2",
                    "3",
                    "10",
                }  # the directory that the shell reads
            agent.close_descriptors()
            measured = agent.started.measured
            assert (
                measured["cpus"],
                measured["nice"],
                all(measured["held"].values()) or ports is None,
            ) == (
                1,
                10,
                True,
            )
    finally:
        await launcher.close()
