"""Identification of processes, and stopping only our own daemon."""

import json
import os
import subprocess
from pathlib import Path

from agentbox.host.engines.docker.daemon import start_ticks, stop


def test_a_process_is_named_by_pid_and_start() -> None:
    """The same process has the same start time; an ended one has none."""
    assert start_ticks(os.getpid()) == start_ticks(os.getpid()) > 0
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert start_ticks(ended.pid) == 0


def test_only_our_daemon_is_stopped(tmp_path: Path) -> None:
    """A recorded pid with another start time is not signalled; a matching one is ended."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        note = tmp_path / "dockerd.json"
        note.write_text(json.dumps({"pid": process.pid, "start_ticks": 1}))
        assert stop(tmp_path) is False
        assert process.poll() is None
        note.write_text(json.dumps({"pid": process.pid, "start_ticks": start_ticks(process.pid)}))
        assert stop(tmp_path) is True
        assert process.wait(5) == -15
        assert stop(tmp_path) is False
    finally:
        process.kill()
