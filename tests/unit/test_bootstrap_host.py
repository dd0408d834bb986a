"""The Python environment of a checkout."""

import subprocess
import sys
from pathlib import Path

import agentbox.bootstrap_host as bootstrap

SCRIPT = Path(bootstrap.__file__)


def make(checkout: Path, stamp: str) -> subprocess.CompletedProcess[str]:
    """One call, as agentbox.sh makes it."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(checkout), stamp], capture_output=True, text=True, check=False
    )


def test_an_environment_is_made_once_and_then_kept(tmp_path: Path) -> None:
    """It gets a stamp and finds the checkout; a second stamp brings the same environment up to date in place."""
    (tmp_path / "requirements.host").write_text("")
    first = make(tmp_path, "one")
    assert first.returncode == 0, first.stderr
    kept = tmp_path / ".venv/kept"
    kept.touch()
    assert (tmp_path / ".venv/.requirements.sha256").read_text() == "one"
    path = subprocess.run(
        [tmp_path / ".venv/bin/python", "-c", "import sys; print(sys.path)"], capture_output=True, text=True, check=True
    )
    assert str(tmp_path) in path.stdout
    assert make(tmp_path, "two").returncode == 0
    assert (tmp_path / ".venv/.requirements.sha256").read_text() == "two"
    assert kept.exists()


def test_a_failure_is_one_sentence_and_leaves_no_stamp(tmp_path: Path) -> None:
    """A package that cannot be had: exit 3, a sentence, a hint, and the next call begins anew."""
    (tmp_path / "requirements.host").write_text("no-such-package-of-agentbox==1.0 --hash=sha256:" + "0" * 64 + "\n")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "s"], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1"},
    )  # fmt: skip
    assert done.returncode == 3
    assert "cannot make the Python environment" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".venv/.requirements.sha256").exists()
