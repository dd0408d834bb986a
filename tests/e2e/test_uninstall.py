"""`uninstall` of a copy of the checkout, under the process engine: afterwards the host has what it
had before, also if `up` was killed. tools/check_uninstall.sh compares a whole fresh machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_box import Ran, wait_for

from agentbox.core.paths import CHECKOUT
from agentbox.host.engines.locations import SYSTEM_ROOT
from agentbox.host.engines.process.box_processes import box_pids
from agentbox.host.uninstall.inventory import Inventory

NAME, PORT = "agentbox-e2e-uninstall", 29150
MANIFEST = f"""\
meta = {{ schema_version = 1, name = "{NAME}" }}
api.port = {PORT}
observability.metrics_port = {PORT + 1}
adapters.pods.use = "off"
adapters.memory.use = "off"
"""
KILLED_AFTER = ("checkout", "process-root", "record")  # what `up` wrote last before it was killed


@dataclass(frozen=True)
class Machine:
    """A home, and a copy of the checkout with an environment that only `uninstall` touches."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def state_root(self) -> Path:
        return self.home / ".local/state/agentbox"

    @property
    def root(self) -> Path:
        system = SYSTEM_ROOT / NAME
        return system if os.geteuid() == 0 else self.state_root / NAME / "root"

    def begin(self, *words: str) -> subprocess.Popen[str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AGENTBOX_", "XDG_", "SUDO_"))
        }
        return subprocess.Popen(
            [sys.executable, "-m", "agentbox", *words], cwd=self.checkout, text=True,
            env={**kept, "HOME": str(self.home), "PYTHONPATH": str(self.checkout), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *words: str) -> Ran:
        process = self.begin(*words)
        out, err = process.communicate(timeout=120)
        return Ran(process.returncode, out, err)

    def listing(self) -> set[str]:
        """Every path below the machine's directory and of the box; the copy's own environment and
        bytecode are the ones that `uninstall` removes."""
        places = (self.folder, self.root) if self.root.exists() else (self.folder,)
        paths = {str(path) for place in places for path in (place, *place.rglob("*"))}
        return {path for path in paths if "/.venv" not in path and "__pycache__" not in path}


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Below a directory that every user can enter: as root the box runs as another user."""
    with tempfile.TemporaryDirectory(prefix="abx-uninstall-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        made = Machine(Path(folder))
        made.home.mkdir()
        for name in ("agentbox", "config", "schema"):
            shutil.copytree(CHECKOUT / name, made.checkout / name)  # with bytecode, as is installed
        for name in ("agentbox.sh", "agentbox.lock", "pyproject.toml", "requirements.mcp"):
            shutil.copy2(CHECKOUT / name, made.checkout / name)
        (made.checkout / "agentbox.toml").write_text(MANIFEST)
        (made.checkout / ".venv").mkdir()
        said = made.run("uninstall", "--dry-run").out
        assert f"{made.checkout}/.venv" in said
        assert f"{CHECKOUT}/.venv" not in said, "this test would remove the environment it runs in"
        yield made
        made.run("uninstall", "--purge", "--yes")


def test_what_up_made_is_gone(machine: Machine) -> None:
    """Without --purge the volumes stay and are named; with it nothing stays. Nothing is done without
    consent."""
    before = machine.listing()
    assert machine.run("up", "--engine", "process").code == 0
    assert box_pids(machine.root)
    refused = machine.run("uninstall", "--purge")
    assert (refused.code, refused.error()[0]) == (2, "cannot uninstall: not confirmed")
    dry = machine.run("--json", "uninstall", "--purge", "--dry-run")
    listed = {(row["kind"], row["name"]): row["size"] for row in dry.json["removed"]}
    assert listed[("volumes", str(machine.root))] > 0
    assert ("processes", str(machine.root)) in listed
    assert box_pids(machine.root), "a dry run stops nothing"

    soft = machine.run("uninstall", "--yes")
    assert soft.code == 0, soft.err
    assert f"{machine.root}/var" in soft.out.splitlines()[-1]
    assert box_pids(machine.root) == []
    assert (machine.root / "var/lib/agentbox").is_dir()
    assert not (machine.checkout / ".venv").exists()

    whole = machine.run("uninstall", "--purge", "--yes")
    assert (whole.code, whole.err.count("problem")) == (0, 0), whole.err
    assert machine.listing() == before
    assert not machine.root.exists()


@pytest.mark.sampled(4, family="uninstallation after a failure")
@pytest.mark.parametrize("last", KILLED_AFTER)
def test_a_killed_up_leaves_nothing_behind(machine: Machine, last: str) -> None:
    """KILL once the inventory has a line of that kind, or once the record is written: the box is
    then not begun, half made, or running."""
    before = machine.listing()
    record = machine.state_root / NAME / "record.json"

    def reached() -> bool:
        return record.exists() if last == "record" else bool(noted().names(last))  # type: ignore[arg-type]

    def noted() -> Inventory:
        return Inventory(machine.state_root)

    process = machine.begin("up", "--engine", "process", "--no-wait")
    wait_for(reached, 60, f"{last} is written")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = machine.run("uninstall", "--purge", "--yes")
    assert done.code == 0, done.err
    assert box_pids(machine.root) == []
    assert machine.listing() == before


@pytest.mark.sampled(4, family="uninstallation after a failure")
def test_what_cannot_be_removed_is_named_and_the_next_call_goes_on(machine: Machine) -> None:
    """A mount point below the box's state stays: exit 1, the mount point, the environment is kept;
    without it the next call removes the rest."""
    if os.geteuid() != 0:
        from skipping import machine_lacks

        machine_lacks("root, to mount a file system")
    before = machine.listing()
    assert machine.run("up", "--engine", "process", "--no-wait").code == 0
    mounted = machine.state_root / NAME / "mounted"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(mounted)], check=True)
    try:
        failed = machine.run("--json", "uninstall", "--purge", "--yes")
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    assert failed.code == 1
    assert failed.json["failed"] == [str(machine.state_root / NAME)]
    assert f"{mounted} is a mount point" in failed.err
    assert (machine.checkout / ".venv").exists(), "the next call needs it"
    assert json.loads(failed.err.splitlines()[-1])["exit_code"] == 1
    assert machine.run("uninstall", "--purge", "--yes").code == 0
    assert machine.listing() == before
