"""`agentbox test` and the suites it starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A suite that takes longer to clean up than a command that is merely killed would give it.
SUITE = """
import pathlib, sys, time
begun, cleared = (pathlib.Path(name) for name in sys.argv[1:])
try:
    begun.write_text("now")
    time.sleep(60)
finally:
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        time.sleep(0.05)
    cleared.touch()
"""
COMMAND = """
import sys
from agentbox.cli.commands.test import _ended
from agentbox.engine.interrupts import same_for_all
same_for_all()
try:
    _ended(sys.argv[1:])
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_suite_clears_up_first(tmp_path: Path, number: signal.Signals) -> None:
    """It is told once, however the command was interrupted, and waited for."""
    os.mkfifo(tmp_path / "begun")
    call = [sys.executable, "-c", SUITE, str(tmp_path / "begun"), str(tmp_path / "cleared")]
    with subprocess.Popen([sys.executable, "-c", COMMAND, *call]) as command:
        assert (tmp_path / "begun").read_text() == "now"
        command.send_signal(number)
        assert command.wait(30) == 130
    assert (tmp_path / "cleared").exists()
