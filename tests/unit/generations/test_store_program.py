"""The program that changes the stores of a box that is down: alone, and no longer than its command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.api.stores import main
from agentbox.box.supervision.current_boot import lock_state
from agentbox.core.paths import PREFIX_VARIABLE, Paths


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """An empty state."""
    monkeypatch.setenv(PREFIX_VARIABLE, str(tmp_path))
    made = Paths(tmp_path)
    made.state.mkdir(parents=True)
    return made


def test_two_never_change_the_state_at_once(
    paths: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the box or another program has the lock, a change is refused; a look is not."""
    lock = lock_state(paths)
    try:
        assert main(["hold", "2"]) == 1
        assert "locked" in capsys.readouterr().err
        assert not paths.held.exists()
        assert main(["numbers"]) == 0
    finally:
        os.close(lock)
    assert main(["hold", "2"]) == 0
    assert paths.held.exists()
    assert main(["unhold"]) == 0
    assert not paths.held.exists()


def test_it_ends_with_its_command() -> None:
    """The pipe at stdin closes when the command is killed; without a pipe it runs to its end."""
    code = (
        "import sys, time; from agentbox.api.stores import _end_with_the_command as watch;"
        "watch(); print('runs', flush=True); time.sleep(float(sys.argv[1]))"
    )
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(
        [*argv, "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        assert program.stdout.readline() == "runs\n"
        assert program.poll() is None
        program.stdin.close()
        assert program.wait(timeout=30) == 1
    done = subprocess.run([*argv, "0"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0
