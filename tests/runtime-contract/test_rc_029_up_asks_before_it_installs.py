"""RC-029: without consent `up` leaves with exit 3 and changes nothing. (With `--yes` on a fresh system: docs/newcomer.)"""

import os
import subprocess
import sys
from pathlib import Path

from agentbox.settings import CHECKOUT


def test_rc_029_refuses_without_consent(tmp_path: Path) -> None:
    """On a machine whose PATH has no engine and no Nix, without a terminal and without --yes: exit 3, a command to run."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("apt-get", "git", "sh", "dpkg", "env", "uname"):
        source = next(Path(folder) / name for folder in ("/usr/bin", "/bin") if (Path(folder) / name).exists())
        (tools / name).symlink_to(source)
    before = installed()
    done = subprocess.run(
        [sys.executable, "-m", "agentbox", "up"], cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": str(tools), "AGENTBOX_STATE_DIR": str(tmp_path / "state"), "DOCKER_HOST": "unix:///nowhere.sock"},
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "apt-get install" in done.stderr
    assert "nix-bin" in done.stderr
    assert installed() == before


def installed() -> str:
    """The package database's own list."""
    return Path("/var/lib/dpkg/status").read_text()
