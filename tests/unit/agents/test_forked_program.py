"""A program that tests fork from a process with its modules is as one that was just started."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agentbox_testkit.wait import pause
from support.agent_host import AgentHostBox

from agentbox.core.linux import procfs
from agentbox.core.paths import PREFIX_VARIABLE

_STARTS = """
import signal, sys
from pathlib import Path
from support.agent_host import AgentHostBox
box = AgentHostBox(Path(sys.argv[1]))
box.start()
print(box.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """Short, as sockets need it."""
    made = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def test_it_is_a_process_of_its_own(directory: Path) -> None:
    """A session of its own, its own environment and descriptors; exit codes are those of the kernel."""
    box = AgentHostBox(directory)
    box.start()
    first = box.pid
    assert os.getsid(first) == first
    box.kill()
    assert not box.running
    box.start()
    assert box.running
    assert box.pid != first
    assert Path(f"/proc/{box.pid}/fd/1").readlink() == box.log
    assert Path(f"/proc/{box.pid}/fd/0").readlink() == Path(os.devnull)
    program = box.process
    assert (program.poll(), program.returncode) == (None, None)
    box.stop()
    assert program.wait(0) == program.returncode == 0
    lost = AgentHostBox(directory)
    lost.start()
    lost.process.kill()
    assert lost.process.wait(20) == -signal.SIGKILL


def test_it_sees_the_environment_that_it_was_given(directory: Path) -> None:
    """Agents of one box know nothing of the starter's: each box works below its own directory."""
    boxes = [AgentHostBox(directory / name) for name in ("one", "two")]
    for box in boxes:
        box.start()
    assert all(box.paths.agent_host_socket.exists() for box in boxes)
    assert PREFIX_VARIABLE not in os.environ
    for box in boxes:
        box.stop()


def test_it_ends_with_the_test_process(directory: Path) -> None:
    """A killed test run leaves no program behind."""
    with subprocess.Popen(
        [sys.executable, "-c", _STARTS, str(directory)], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert procfs.is_alive(pid)
        run.kill()
    began = time.monotonic()
    while procfs.is_alive(pid):
        assert time.monotonic() - began < 20
        time.sleep(pause(began))
