"""Interrupts (Ctrl-C) at critical moments."""

import os
import signal
import subprocess
import sys

import pytest

from agentbox.host.engines.command import run
from agentbox.host.engines.interrupts import deferred_interrupts


def test_the_first_interrupt_waits_for_the_block() -> None:
    """The block completes, then the interrupt is raised; afterwards the old handler is restored."""
    before, done = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with deferred_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("the rest of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest of it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_interrupt_is_obeyed() -> None:
    """It is raised immediately."""
    done = []

    def work() -> None:
        with deferred_interrupts():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            done.append("never")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == []


def test_nothing_happened_nothing_is_raised() -> None:
    """Without an interrupt nothing is raised."""
    with deferred_interrupts():
        pass


def test_a_whole_program_ends_before_the_interrupt_counts(tmp_path) -> None:
    """The program runs in its own session, so the terminal's signal does not reach it."""
    mark = tmp_path / "mark"
    script = f"import os, signal, time; os.kill(os.getppid(), signal.SIGINT); open({str(mark)!r}, 'w').write('whole')"
    with pytest.raises(KeyboardInterrupt):
        run([sys.executable, "-c", script], doing="write", uninterruptible=True)
    assert mark.read_text() == "whole"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_way_to_end_a_command_is_one(number: signal.Signals) -> None:
    """INT, TERM and HUP: exit 130 and the same message."""
    code = "import os, signal, time; from agentbox.host.cli import main as m; m.cli.main = lambda *a, **k: (print(1, flush=True), time.sleep(30)); m.main([])"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    process.send_signal(number)
    assert process.communicate(timeout=20)[1] == "agentbox: interrupted\n"
    assert process.returncode == 130
