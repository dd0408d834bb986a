"""An agent's session weighs less than the control plane's, where the kernel weighs sessions."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentbox.sandbox.leader import NICE
from agentbox.sandbox.weight import AGAIN_SECONDS, Weight

GROUPS = Path("/proc/self/autogroup").exists()


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process in a session of its own."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process.pid
        process.kill()


def nice_of(pid: int) -> int:
    found = re.search(r"nice (-?\d+)", Path(f"/proc/{pid}/autogroup").read_text())
    assert found is not None
    return int(found[1])


def test_the_session_is_given_the_nice_value(sleeper: int) -> None:
    """As soon as the kernel takes it; where it has no such groups, asking does no harm and ends."""
    weight = Weight(sleeper, NICE)
    deadline = time.monotonic() + 10 * AGAIN_SECONDS
    while (wait := weight.patience()) is not None and time.monotonic() < deadline:
        time.sleep(wait)
        weight.ask()
    assert weight.patience() is None
    if GROUPS:
        assert nice_of(sleeper) == NICE


def test_a_process_that_is_gone_ends_it() -> None:
    """And so does a number that was never one."""
    weight = Weight(4_194_305, NICE)
    weight.ask()
    assert weight.patience() is None
