"""`uninstall` after an `up` that was killed, and where something cannot be removed: afterwards the host
has what it had before. The rest is RC-040; tools/check_uninstall.sh compares a whole fresh machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from cli_box import wait_for
from support.fresh_machine import NAME, Machine, fresh_machine

from agentbox.host.engines.process.box_processes import box_pids
from agentbox.host.uninstall.inventory import Inventory

KILLED_AFTER = ("checkout", "process-root", "record")  # what `up` wrote last before it was killed


@pytest.fixture
def machine() -> Iterator[Machine]:
    """One for each test."""
    with fresh_machine() as made:
        yield made


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
    assert done.returncode == 0, done.stderr
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
    assert machine.run("up", "--engine", "process", "--no-wait").returncode == 0
    mounted = machine.state_root / NAME / "mounted"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(mounted)], check=True)
    try:
        failed = machine.run("--json", "uninstall", "--purge", "--yes")
    finally:
        subprocess.run(["umount", str(mounted)], check=True)
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["failed"] == [str(machine.state_root / NAME)]
    assert f"{mounted} is a mount point" in failed.stderr
    assert (machine.checkout / ".venv").exists(), "the next call needs it"
    assert json.loads(failed.stderr.splitlines()[-1])["exit_code"] == 1
    assert machine.run("uninstall", "--purge", "--yes").returncode == 0
    assert machine.listing() == before
