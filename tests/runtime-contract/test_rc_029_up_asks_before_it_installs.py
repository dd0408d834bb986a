"""RC-029: without consent `up` exits with 3, prints what it would install, and changes nothing.
Column D. The other half, `up --yes` on a fresh system, needs a machine that may be installed on:
the howto for newcomers covers it, not this suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.uninstall.inventory import Inventory

TOOLS = ("apt-get", "docker", "docker-compose", "dpkg", "env", "git", "iptables", "sh", "uname")
FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/local/bin")


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH without Nix."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        found = [Path(folder) / name for folder in FOLDERS if (Path(folder) / name).exists()]
        assert found, f"this host has no {name}"
        (tools / name).symlink_to(found[0])
    return str(tools)


def test_rc_029_refuses_without_consent(tmp_path: Path, bare_path: str) -> None:
    """No Nix, no terminal and no --yes: exit 3, the package and a command to run; nothing was
    installed, nothing of a box remains."""
    state, before = tmp_path / "state", installed()
    done = subprocess.run(
        [sys.executable, "-m", "agentbox", "up"], cwd=CHECKOUT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, env={**os.environ, "PATH": bare_path, "AGENTBOX_STATE_DIR": str(state)},
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "apt-get install nix-bin" in done.stderr
    assert before.count("Status: install ok installed") > 20
    assert installed() == before
    # The directory with the lock is on this host, so the inventory names it for `uninstall`.
    kept = {path.name for path in state.rglob("*") if path.is_file()}
    assert kept == {"root.lock", "up.lock", "inventory.jsonl"}
    assert {item.kind for item in Inventory(state).items()} == {"checkout", "box"}


def installed() -> str:
    """The package database's own list."""
    return Path("/var/lib/dpkg/status").read_text()
