"""Programs of a killed command are found and ended; those of a running one are not touched."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from skipping import machine_lacks

from agentbox.core.paths import COMMAND_VARIABLE
from agentbox.host.engines.docker.daemon import MARK, start_ticks
from agentbox.host.uninstall.orphans import end_orphans, find_orphans

ENDED, RUNNING = "4194304:1", f"{os.getpid()}:{start_ticks(os.getpid())}"  # a pid beyond pid_max


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Of an ended command, of one that runs, of a dockerd, and with a value that is none."""
    environments = [
        {COMMAND_VARIABLE: ENDED},
        {COMMAND_VARIABLE: RUNNING},
        {COMMAND_VARIABLE: ENDED, MARK: "/somewhere"},
        {COMMAND_VARIABLE: "nonsense"},
    ]
    made = [subprocess.Popen(["sleep", "600"], env={**os.environ, **env}) for env in environments]
    yield made
    for process in made:
        process.kill()
        process.wait()


def test_only_programs_of_an_ended_command_are_ended(
    started: list[subprocess.Popen[bytes]],
) -> None:
    """The others run on."""
    pids = {process.pid for process in started}
    found = [orphan for orphan in find_orphans() if orphan.pid in pids]
    assert [orphan.pid for orphan in found] == [started[0].pid]
    end_orphans(found)
    assert started[0].wait(10) == -15
    assert [process.poll() for process in started[1:]] == [None, None, None]


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
