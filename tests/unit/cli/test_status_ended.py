"""`status` of a box that is not running: how it ended, and what to do."""

import subprocess
from pathlib import Path

import pytest

from agentbox.host.cli.commands.box.status import _describe_ended
from agentbox.host.engines.base import BoxStatus
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxRecord

STOPPED = '{"event":"BootstrapStarted"}\n{"event":"ShutdownCompleted","drained_ms":100,"tasks_ended":["a"]}\n'


@pytest.fixture
def record(tmp_path: Path) -> BoxRecord:
    """Of a process-engine box whose first process has exited, without a record of its end."""
    (tmp_path / "boot.log").write_text('{"event":"BootstrapStarted"}\n')
    with subprocess.Popen(["true"]) as ended:
        pid = ended.pid
    return BoxRecord(
        engine="process", name="gone", api_url="", root=str(tmp_path), pid=pid, start_ticks=1
    )


def test_a_killed_box_has_no_exit_code(record: BoxRecord) -> None:
    """The exit code is unknown; the first process was killed, and `up` boots the box again."""
    found = _describe_ended(ProcessEngine(), record, ProcessEngine().inspect(record))
    assert (found["state"], found["exit_code"]) == ("exited", None)
    assert "was killed" in found["why"]
    assert "agentbox.sh up" in found["fix"]


def test_a_box_that_was_stopped_says_so(record: BoxRecord) -> None:
    """With the task that ended."""
    (Path(record.root) / "boot.log").write_text(STOPPED)
    assert (
        "clean, drained in 0.1 s, ended a"
        in _describe_ended(ProcessEngine(), record, ProcessEngine().inspect(record))["why"]
    )


def test_a_boot_that_failed_says_why(record: BoxRecord) -> None:
    """With the reason and remedy of the boot."""
    failed = '{"event":"BootstrapFailed","phase":"1","reason":"cannot write /var/lib/agentbox: full","fix":"Make room."}'
    (Path(record.root) / "boot.log").write_text('{"event":"BootstrapStarted"}\n' + failed + "\n")
    found = _describe_ended(ProcessEngine(), record, BoxStatus("exited", 1, 5))
    assert (
        found["why"]
        == "boot failed in phase 1: cannot write /var/lib/agentbox: full; process restarted it 5 times"
    )
    assert found["fix"] == "Make room. Then run ./agentbox.sh up"


def test_an_engine_that_gave_up_is_named(record: BoxRecord) -> None:
    """The number of restarts, and that `up` resets the count."""
    found = _describe_ended(ProcessEngine(), record, BoxStatus("exited", 137, 5))
    assert "5 times, the maximum" in found["why"]
    assert "starts it with a new count" in found["fix"]
