"""How a complete box ends: in no more time than its programs need, and together with its
supervisord."""

import os
import signal
import time
from collections.abc import Iterator

import pytest
from helpers import sh, until
from support.prefix_box import PrefixBox
from test_supervised import Sealed, plan

from agentbox.host.engines.process.box_processes import box_pids


@pytest.fixture
def sealed() -> Iterator[Sealed]:
    with PrefixBox() as box:
        running = Sealed(box, box.install(plan()))
        running.start()
        yield running
        running.client.close()


@pytest.mark.timed
def test_an_idle_box_stops_at_once(sealed: Sealed) -> None:
    """SIGTERM of PID 1: agent-host does not wait for programs that wait for it, and no death is
    noticed a second later."""
    until(lambda: sealed.client.health().status == "ok")
    began = time.monotonic()
    sealed.box.stop()
    seconds = time.monotonic() - began
    assert sealed.box.events("ShutdownCompleted")
    assert seconds < 1.5


@pytest.mark.timed
def test_everything_ends_with_supervisord(sealed: Sealed) -> None:
    """SIGKILL of supervisord: the agent is ended within its grace, and no program of the box outlives it."""
    made = sealed.client.agents.spawn(sh("exec sleep 300"))
    pid = sealed.client.agents.get(made.agent_id).pid
    assert pid is not None
    assert sealed.box.process is not None
    os.kill(sealed.box.process.pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}"), 5)  # noqa: PTH110
    until(lambda: not box_pids(sealed.box.paths.prefix), 15)


@pytest.mark.timed
def test_a_killed_program_is_started_again_at_once(sealed: Sealed) -> None:
    """supervisord sees the death when it happens."""
    old = sealed.pid("gateway")
    os.kill(old, signal.SIGKILL)
    until(lambda: sealed.pid("gateway") not in (0, old), 1)
