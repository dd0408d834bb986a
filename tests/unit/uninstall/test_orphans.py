"""Programs of a killed command are found and ended; those of a running one are not touched."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from skipping import machine_lacks

from agentbox.core.paths import COMMAND_VARIABLE
from agentbox.host.engines.docker.daemon import MARK, start_ticks
from agentbox.host.uninstall.orphans import Orphan, end_orphans, find_orphans, orphan_removals
from agentbox.host.uninstall.removal import Kept, Removal

ENDED, RUNNING = "4194304:1", f"{os.getpid()}:{start_ticks(os.getpid())}"  # a pid beyond pid_max


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Of an ended command, of one that runs, of a dockerd, and with a value that is none; named as
    a program that agentbox starts. The last one, an editor say, has another name."""
    ours, other = tmp_path / "nix-store", tmp_path / "editor"
    for path in (ours, other):
        shutil.copy(str(shutil.which("sleep")), path)
    environments = [
        {COMMAND_VARIABLE: ENDED},
        {COMMAND_VARIABLE: RUNNING},
        {COMMAND_VARIABLE: ENDED, MARK: "/somewhere"},
        {COMMAND_VARIABLE: "nonsense"},
    ]
    made = [subprocess.Popen([str(ours), "600"], env={**os.environ, **env}) for env in environments]
    made.append(subprocess.Popen([str(other), "600"], env={**os.environ, COMMAND_VARIABLE: ENDED}))
    yield made
    for process in made:
        process.kill()
        process.wait()


def test_only_programs_of_an_ended_command_are_ended(
    started: list[subprocess.Popen[bytes]],
) -> None:
    """The others run on; the plan names one that agentbox does not start."""
    pids = {process.pid for process in started}
    found = sorted(
        (orphan for orphan in find_orphans() if orphan.pid in pids), key=lambda row: row.pid
    )
    assert {orphan.pid for orphan in found} == {started[0].pid, started[-1].pid}
    named = {row.name: row for row in orphan_removals()}
    kept = named[f"editor, pid {started[-1].pid}, of a killed command"]
    assert isinstance(kept, Kept)
    step = named[f"nix-store, pid {started[0].pid}, of a killed command"]
    assert isinstance(step, Removal)
    end_orphans(found)
    assert started[0].wait(10) == -15
    assert [process.poll() for process in started[1:]] == [None] * 4


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        (("python3", "-P", "-m", "pip", "install"), True),
        (("python3", "-m", "agentbox.host.image"), True),
        (("python3", "-P", "-m", "agentbox", "up"), False),  # a command of its own
        (("python3", "server.py"), False),
        (("python3", "-m", "http.server"), False),
        (("python3", "-m"), False),
    ],
)
def test_a_python_is_ours_by_its_module(argv: tuple[str, ...], ours: bool) -> None:
    """A server of the operator is a Python as well."""
    assert Orphan(1, 1, "python3", argv).is_ours is ours


def test_programs_of_another_namespace_are_not_looked_at() -> None:
    """The id of their command means another process here."""
    if os.geteuid() != 0:
        machine_lacks("root, to make a namespace of process ids")
    argv = ["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", "echo up; exec sleep 600"]
    env = {**os.environ, COMMAND_VARIABLE: RUNNING}  # of unshare itself; sh gets the one below
    argv[4:4] = ["env", f"{COMMAND_VARIABLE}={ENDED}"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 1
        assert int(children[0]) not in {orphan.pid for orphan in find_orphans()}
        process.kill()
