"""`agentbox test` and the suites it starts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.cli.commands.test import Suite, _run

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


def test_what_failed_is_named_at_the_end(tmp_path: Path) -> None:
    """A test that fails and one whose fixture does; one that passes is not named."""
    (tmp_path / "test_three.py").write_text(
        "import pytest\n@pytest.fixture\ndef broken(): raise ValueError('no server')\n"
        "def test_holds(): assert True\ndef test_fails(): assert 1 == 2, 'one is not two'\ndef test_errs(broken): pass\n"
    )
    result = _run(Suite("three", (("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)),)))
    assert not result.passed
    errs, fails = sorted(result.failed)
    assert "test_three.py::test_errs: " in errs
    assert "no server" in errs
    assert "test_three.py::test_fails: AssertionError: one is not two" in fails
