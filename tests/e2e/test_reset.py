"""A box that is reset, by a command that is killed, and whole; and back. One box of the process
engine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_box import CliBox

from agentbox.backup.archive.keys import new_identity
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.host.engines.state import BoxState
from agentbox.mesh.client.instance import FILE, InstanceIdentity, load_or_create

UP = ("--engine", "process")
KILLER = CHECKOUT / "tests/support/killed_after.py"
ENGINES = "agentbox.host.engines"
POINTS = {
    "the new state was made": "agentbox.host.restore.new_state:make_fresh",
    "the box was stopped": f"{ENGINES}.process.process:ProcessEngine.stop",
    "the generation was noted": f"{ENGINES}.reconcile:begin",
    "the volumes were exchanged": f"{ENGINES}.process.process:mount",
    "the box was started": f"{ENGINES}.process.process:ProcessEngine.start",
    "the start was noted": f"{ENGINES}.reconcile:started",
}


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliBox]:
    """A box with a bead, a file in its workspace, and backups that are set up."""
    made = CliBox(tmp_path_factory.mktemp("reset"), "agentbox-e2e-reset", 29210)
    made.down()
    made.write(f'backup.recipients = ["{new_identity()[1]}"]\n')
    made.up(*UP)
    assert made("bead", "create", "kept").code == 0
    (workspace(made) / "file").write_text("mine")
    yield made
    made.down()


def root(box: CliBox) -> Path:
    return Path(BoxState(box.state).running_record().root)


def workspace(box: CliBox) -> Path:
    return root(box) / "workspace"


def titles(box: CliBox) -> list[str]:
    """Without the epic that the box itself makes for tasks."""
    found = (bead["title"] for bead in box("--json", "bead", "list").json)
    return sorted(title for title in found if title != "tasks")


def snapshots(box: CliBox) -> dict[str, str]:
    """Tags of the snapshots by id."""
    return {row["id"]: row["tag"] for row in box("--json", "backup", "list").json}


def current(box: CliBox) -> int:
    number: int = box("--json", "generations").json["current"]
    return number


def mesh(box: CliBox) -> Path:
    """The folder of what the box is in a mesh."""
    return Paths(root(box)).slot("mesh")


def identified(box: CliBox) -> InstanceIdentity:
    """The identity of the box at a host, made as its client of a mesh does."""
    found = load_or_create(mesh(box))
    if os.geteuid() == 0:
        for path in (mesh(box), mesh(box) / FILE):
            os.chown(path, BOX_UID, BOX_UID)
    return found


def is_fresh(box: CliBox) -> bool:
    """True for a new box, False for the old one; nothing in between."""
    found = titles(box)
    assert "kept" in found or not found
    assert (workspace(box) / "file").exists() == bool(found)
    return not found


@pytest.mark.sampled(6, family="killed resets")
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_reset_leaves_one_box(box: CliBox, point: str) -> None:
    """SIGKILL once that is done: `up` starts the old box or the new one, whole; `rollback` brings
    the old one back.
    """
    before = current(box)
    words = ("--manifest", str(box.manifest), "reset", "--yes", "--no-backup")
    killed = subprocess.run(
        [sys.executable, str(KILLER), POINTS[point], *words],
        cwd=CHECKOUT, env=box.environ(), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    box.up(*UP)
    assert box.status()["state"] == "ready"
    assert is_fresh(box) == (current(box) != before)
    if current(box) != before:
        assert box("rollback", timeout=200).code == 0
    assert not is_fresh(box)
    assert box("bead", "create", f"after {point}").code == 0


def test_wrong_input_changes_nothing(box: CliBox) -> None:
    """No consent, an unknown part, and a box that has no state."""
    number = current(box)
    assert "not confirmed" in box("reset").error()[0]
    ran = box("reset", "--yes", "--keep", "identities,beads")
    assert ran.code == 2
    assert "cannot keep 'beads'" in ran.error()[0]
    assert "identities, secrets, backups" in ran.error()[1]
    assert current(box) == number


def test_a_reset_box_is_as_after_its_first_boot_and_goes_back(box: CliBox) -> None:
    """With a backup first, in the volumes that wait; other tokens. After `prune` the old ones are
    gone.
    """
    first, token = current(box), (box.state / "token").read_text()
    identity = identified(box)
    assert box("token", "create", "reader", "--scope", "beads:read").code == 0
    ran = box("--json", "reset", "--yes", timeout=300)
    assert ran.code == 0, ran.err
    made = ran.json
    assert (made["previous"], made["kept"]) == (first, [])
    assert is_fresh(box)
    assert box("--json", "token", "list").json == []
    assert snapshots(box) == {}
    assert (box.state / "token").read_text() != token
    assert not (mesh(box) / FILE).exists()
    types = box("--json", "events", "tail", "-n", "1000").out
    assert '"journal.reset"' in types
    assert box("events", "verify").code == 0
    back = box("rollback", timeout=200)
    assert back.code == 0, back.err
    assert not is_fresh(box)
    assert load_or_create(mesh(box)) == identity
    assert (box.state / "token").read_text() == token
    assert snapshots(box) == {made["backup"]: "pre-reset"}
    refused = box("generations", "prune", str(made["generation"]))
    assert refused.code == 2
    assert f"state-g{made['generation']}" in refused.error()[0]
    assert box("generations", "prune", str(made["generation"]), "--yes").code == 0
    waiting = [path.name for path in (root(box) / "volumes").iterdir() if path.is_dir()]
    assert not any(name.endswith(f"-g{made['generation']}") for name in waiting)


def test_what_is_kept_stays(box: CliBox) -> None:
    """Identity in a mesh, admin token and snapshots, where they are named; the box's user can read
    them."""
    token, kept, identity = (box.state / "token").read_text(), snapshots(box), identified(box)
    assert kept
    owner = (mesh(box) / FILE).stat()
    words = ("--keep", "backups,secrets,identities")
    ran = box("reset", "--yes", "--no-backup", *words, timeout=300)
    assert ran.code == 0, ran.err
    assert is_fresh(box)
    assert (box.state / "token").read_text() == token
    assert snapshots(box) == kept
    assert load_or_create(mesh(box)) == identity
    now = (mesh(box) / FILE).stat()
    assert (now.st_uid, now.st_mode) == (owner.st_uid, owner.st_mode)
