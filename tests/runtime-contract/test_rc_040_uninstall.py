"""RC-040: what agentbox made on a machine is gone after `uninstall --purge --packages`. Column H, of
the files, processes and folders of one user; `tools/check_uninstall.sh` compares a whole machine that
may be thrown away, with packages, users, mounts and the packet filter, for either engine."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.fresh_machine import Machine, fresh_machine

from agentbox.host.engines.process.box_processes import box_pids

INVENTORY = "agentbox/host/uninstall/inventory.py"
# The mutant: an `up` that does not note the folders above those that it makes.
FORGETS = """
_append = Inventory._append
Inventory._append = lambda self, items, **options: _append(
    self, [item for item in items if item.kind != "parent"], **options
)
"""


@pytest.fixture
def machine() -> Iterator[Machine]:
    """With a home and a checkout that nothing was started from."""
    with fresh_machine() as made:
        yield made


def is_as_before(machine: Machine, before: set[str]) -> None:
    """Nothing is left, nothing is lost."""
    done = machine.run("uninstall", "--purge", "--packages", "--yes")
    assert (done.returncode, done.stderr.count("problem")) == (0, 0), done.stderr
    after = machine.listing()
    assert before - after == set(), "lost"
    assert after - before == set(), "left"


def test_rc_040_what_up_made_is_gone(machine: Machine) -> None:
    """Without --purge the volumes stay and are named; with it nothing stays. Nothing is done without
    consent."""
    before = machine.listing()
    assert machine.run("up", "--engine", "process").returncode == 0
    assert box_pids(machine.root)
    refused = machine.run("uninstall", "--purge", "--packages")
    assert refused.returncode == 2
    assert "cannot uninstall: not confirmed" in refused.stderr
    dry = machine.run("--json", "uninstall", "--purge", "--packages", "--dry-run")
    listed = {(row["kind"], row["name"]): row["size"] for row in json.loads(dry.stdout)["removed"]}
    assert listed[("volumes", str(machine.root))] > 0
    assert ("processes", str(machine.root)) in listed
    assert box_pids(machine.root), "a dry run stops nothing"

    soft = machine.run("uninstall", "--yes")
    assert soft.returncode == 0, soft.stderr
    assert f"{machine.root}/var" in soft.stdout.splitlines()[-1]
    assert box_pids(machine.root) == []
    assert (machine.root / "var/lib/agentbox").is_dir()
    assert not (machine.checkout / ".venv").exists()

    is_as_before(machine, before)
    assert not machine.root.exists()


def test_rc_040_what_is_not_noted_is_seen(machine: Machine) -> None:
    """A box that is begun is enough."""
    with (machine.checkout / INVENTORY).open("a") as stream:
        stream.write(FORGETS)
    before = machine.listing()
    assert machine.run("up", "--engine", "process", "--no-wait").returncode == 0
    with pytest.raises(AssertionError, match="left"):
        is_as_before(machine, before)
