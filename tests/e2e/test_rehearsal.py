"""A snapshot is restored into a throw-away box: it gets ready or not, and nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
from cli_box import CliBox, end, wait_for
from rehearsal_traces import processes, traces
from support.staged_state import stage

from agentbox.backup.archive.keys import new_identity
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.core.paths import Paths


@dataclass
class Repository:
    """Snapshots of a box that runs: `good`, `broken`, whose box cannot get ready, and `damaged`."""

    box: CliBox
    folder: Path
    identity: Path
    beads: int  # at the cut

    @property
    def given(self) -> tuple[str, ...]:
        return ("--rehearse", "--repository", str(self.folder), "--identity", str(self.identity))


@pytest.fixture(scope="module")
def repository(cli_box: CliBox, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    folder = tmp_path_factory.mktemp("snapshots")
    secret, recipient = new_identity()
    (folder / "identity").write_text(f"{secret}\n")
    cli_box.up("--engine", "process")
    cli_box("bead", "create", "at the cut")
    root = Path(json.loads((cli_box.state / "record.json").read_text())["root"])
    for name in ("good", "broken", "damaged"):
        stage(Paths(root), folder / name, snapshot=name, box=cli_box.name)
    agents = folder / "broken/state/orchestrator/agents.db"
    with closing(apsw.Connection(str(agents))) as connection:  # so that agent-host does not start
        connection.execute("ALTER TABLE facts RENAME COLUMN value TO gone")
    for name in ("good", "broken", "damaged"):
        ArchiveRepository(folder / "repository", [recipient]).write(folder / name)
    with (folder / "repository/damaged.tar.zst.age").open("r+b") as archive:
        archive.truncate(os.fstat(archive.fileno()).st_size - 1)
    with closing(apsw.Connection(str(folder / "good/state/beads/beads.db"))) as connection:
        beads = int(str(connection.execute("SELECT count(*) FROM beads").fetchall()[0][0]))
    return Repository(cli_box, folder / "repository", folder / "identity", beads)


def test_a_snapshot_is_rehearsed_beside_the_box(repository: Repository) -> None:
    """It shows what is in the snapshot; the box goes on, and nothing of the other one is left."""
    box = repository.box
    boot = box.status()["boot_id"]
    ran = box("--json", "backup", "verify", "good", *repository.given, timeout=300)
    assert ran.code == 0, ran.err
    assert ran.json["counts"]["beads"] == repository.beads > 0
    assert ran.json["journal_seq"] > 1
    assert box.status()["boot_id"] == boot
    assert traces(box) == []


def test_what_cannot_be_restored_is_named(repository: Repository) -> None:
    """A damaged archive, a wrong identity, none."""
    box = repository.box
    ran = box("backup", "verify", "damaged", *repository.given)
    assert (ran.code, "damaged.tar.zst.age" in ran.out) == (1, True), ran
    other = repository.folder.parent / "other"
    other.write_text(new_identity()[0])
    for words, said in (
        (("--identity", str(other)), "no given identity belongs"),
        ((), "no identity was given"),
    ):
        ran = box("backup", "verify", "good", *repository.given[:3], *words)
        assert ran.code == 2, ran
        assert said in ran.error()[0]
    assert traces(box) == []


@pytest.mark.sampled(3, family="restores")
def test_a_state_with_which_no_box_gets_ready_is_not_sound(repository: Repository) -> None:
    """Exit 1; the box goes on."""
    box = repository.box
    ran = box("backup", "verify", "broken", *repository.given, timeout=300)
    assert ran.code == 1, ran.err
    assert ran.error()[0].startswith("cannot rehearse broken: a box of it is not good: ")
    assert box.status()["state"] == "ready"
    assert traces(box) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_is_removed_when_the_command_ends_early(
    repository: Repository, number: signal.Signals
) -> None:
    """By the command itself after Ctrl-C; by the next one after KILL, which says so."""
    box = repository.box
    process = box.begin(
        "backup", "verify", "good", *repository.given, out=repository.folder.parent / "out"
    )
    wait_for(lambda: len(processes(box)) > 3, 60, "the other box starts")
    networks = {Path(f"/proc/{pid}/net/dev").read_text().count(":") for pid in processes(box)[:3]}
    assert networks == {1}, "the loopback interface only"
    end(process, number, group=number is signal.SIGINT)
    process.wait(timeout=60)
    if number is signal.SIGKILL:
        assert processes(box) != []
        ran = box("status")
        assert ran.code == 0, ran.err
        assert "a rehearsal was interrupted: its box is removed" in ran.out + ran.err
    assert traces(box) == []
    assert box.status()["state"] == "ready"


@pytest.mark.sampled(3, family="restores")
def test_a_container_is_rehearsed(other: CliBox, tmp_path: Path) -> None:
    """From the repository of the box, in a container without ports or a network; after KILL the
    next command removes it."""
    secret, recipient = new_identity()
    identity = tmp_path / "identity"
    identity.write_text(f"{secret}\n")
    other.write(f'backup.recipients = ["{recipient}"]\n')
    other.up("--engine", "docker")
    other("bead", "create", "at the cut")
    assert other("backup", "create").code == 0
    words = ("backup", "verify", "latest", "--rehearse", "--identity", str(identity))
    process = other.begin(*words, out=tmp_path / "out")
    name = f"{other.name}_rehearsal"
    inspected = ["docker", "container", "inspect", "--format", "{{json .}}", name]

    def container() -> Any:
        found = subprocess.run(inspected, capture_output=True, check=False)
        return json.loads(found.stdout) if found.returncode == 0 else None

    found = wait_for(container, 120, "the other container")
    assert found["HostConfig"]["NetworkMode"] == "none"
    assert not found["HostConfig"]["PortBindings"]
    end(process, signal.SIGKILL, group=False)
    process.wait(timeout=60)
    assert other("status").code == 0
    assert traces(other) == []
    ran = other("--json", *words, timeout=400)
    assert ran.code == 0, ran.err
    assert ran.json["counts"]["beads"] > 0
    assert traces(other) == []

    other.write(f"{other.extra}resources.stop_seconds = 33\nupgrade.settle_seconds = 0\n")
    boot = other.status()["boot_id"]
    ran = other("--json", "upgrade", "--rehearse", "--yes", timeout=400)
    assert ran.code == 0, ran.err
    assert (ran.json["good"], ran.json["changed"]) == (True, False)
    assert other.status()["boot_id"] == boot
    assert traces(other) == []
    assert other.status()["state"] == "ready"
