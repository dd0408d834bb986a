"""`agentbox test` as PID 1: reaps zombies, forwards signals and exit codes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# The command itself, with a suite of one program instead of all.
COMMAND = """
import sys
from agentbox.host.cli.commands.dev import test
from agentbox.host.cli.main import main
from agentbox.host.cli.suites.catalogue import Suite
from pathlib import Path
test.DIRECTORY, test.RESULTS = Path(sys.argv[1]), Path(sys.argv[1], "results.json")
test.SUITES = (Suite("lint", programs=(("python", "-c", sys.argv[2]),)),)
sys.argv[1:] = ["test", "lint"]
main()
"""
ORPHAN = """
import os, subprocess, time
orphan = int(subprocess.run(["sh", "-c", "sleep 0 >&- & echo $!"], stdout=subprocess.PIPE, check=True).stdout)
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        os.kill(orphan, 0)  # a zombie takes it
    except ProcessLookupError:
        break
    time.sleep(0.01)
else:
    raise SystemExit("a zombie that nobody reaps")
"""
INIT = """
import os, signal, subprocess, sys
from agentbox.host.cli.suites.init_process import run_under_init
run_under_init()
"""


def _first(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python as PID 1 of a namespace."""
    space = ["unshare", "--pid", "--fork", "--kill-child"]
    if os.geteuid():
        space += ["--user", "--map-root-user"]
    return subprocess.run(
        [*space, sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_test_command_leaves_no_zombie(tmp_path: Path) -> None:
    """Orphans of a suite are reaped while the suite runs."""
    done = _first(COMMAND, str(tmp_path), ORPHAN)
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_suite_that_fails_is_told_through_init(tmp_path: Path) -> None:
    """The exit code is the command's."""
    done = _first(COMMAND, str(tmp_path), "raise SystemExit(7)")
    assert done.returncode == 1, done.stderr
    assert "FAILED" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("raise SystemExit(subprocess.run(['sh', '-c', 'exit 7']).returncode)", 7),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("print(os.getpid() > 1 == os.getppid(), os.getpgrp() == os.getpid())", 0),
    ],
)
def test_the_end_is_the_command_s(words: str, code: int) -> None:
    """Also where a signal ends it; the exit codes of its own children are its own."""
    done = _first(INIT + words)
    assert (done.returncode, done.stdout.strip()) == (code, "" if code else "True True"), (
        done.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_init_reaches_the_command_once(number: signal.Signals) -> None:
    """Though the kernel withholds most signals from the first process; signals blocked before stay
    blocked."""
    before = f"import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [{number}])\n"
    done = _first(
        f"{before}{INIT}os.kill(1, {number})\n"
        f"print(signal.sigwait([{number}]), signal.sigtimedwait([{number}], 0.2), signal.pthread_sigmask(0, []))"
    )
    assert done.stdout.split("\n")[0] == f"{int(number)} None {{{number!r}}}", done.stderr


def test_elsewhere_nothing_is_forked() -> None:
    """Under another init the process stays the same."""
    asked = "before = os.getpid()\nrun_under_init()\nprint(before == os.getpid())"
    done = subprocess.run(
        [sys.executable, "-c", INIT + asked], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"
