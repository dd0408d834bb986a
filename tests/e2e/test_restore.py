"""A snapshot of a real box, restored in place, into another box, and not at all."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest
from cli_box import CliBox
from support.staged_state import stage

from agentbox.backup.archive.keys import new_identity
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.core.paths import Paths

UP = ("--engine", "process")


@dataclass
class Snapshots:
    """A repository in a folder, of a box that had one bead and a memory of its own at the cut."""

    box: CliBox
    folder: Path
    recipient: str
    identity: Path
    bead: str

    def archive(self, name: str) -> str:
        return str(self.folder / f"{name}.tar.zst.age")

    def restore(self, name: str, *words: str, box: CliBox | None = None) -> tuple[int, str]:
        given = ("--identity", str(self.identity), "--yes", *words)
        ran = (box or self.box)("restore", self.archive(name), *given, timeout=300)
        return ran.code, ran.out if ran.code == 0 else " ".join(ran.error())

    def write(self, staged: Path) -> None:
        ArchiveRepository(self.folder, [self.recipient]).write(staged)


@pytest.fixture(scope="module")
def snapshots(cli_box: CliBox, tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    folder = tmp_path_factory.mktemp("snapshots")
    secret, recipient = new_identity()
    identity = folder / "identity"
    identity.write_text(f"# recovery sheet\n{secret}\n")
    cli_box.up(*UP)
    bead = cli_box("bead", "create", "at the cut").out.strip()
    made = Snapshots(cli_box, folder / "repository", recipient, identity, bead)
    paths = Paths(Path(json.loads((cli_box.state / "record.json").read_text())["root"]))
    for name in ("good", "broken"):
        stage(paths, folder / name, snapshot=name, box=cli_box.name)
    agents = folder / "broken/state/orchestrator/agents.db"
    with closing(apsw.Connection(str(agents))) as connection:  # so that agent-host does not start
        connection.execute("ALTER TABLE facts RENAME COLUMN value TO gone")
    made.write(folder / "good")
    made.write(folder / "broken")
    return made


@pytest.fixture
def later(snapshots: Snapshots) -> str:
    """A bead that is younger than the snapshots, in a box that runs."""
    return snapshots.box("bead", "create", "after the cut").out.strip()


def beads(box: CliBox) -> set[str]:
    return {bead["id"] for bead in box("--json", "bead", "list").json}


def boot(box: CliBox) -> str:
    return str(box.status()["boot_id"])


def test_nothing_stops_for_what_cannot_be_restored(snapshots: Snapshots, later: str) -> None:
    """No identity, another one, a damaged archive, a box of another name, no consent."""
    box, running = snapshots.box, boot(snapshots.box)
    archive = snapshots.archive("good")
    said, _hint = box("restore", archive, "--yes").error()
    assert "it was encrypted to 1 recipient, and no identity was given" in said
    other = snapshots.folder / "other"
    other.write_text(new_identity()[0])
    ran = box("restore", archive, "--yes", "--identity", str(other))
    assert ran.code == 2
    assert "encrypted to 1 recipient, and no given identity belongs" in ran.error()[0]
    assert box("restore", archive, "--identity", str(snapshots.identity)).code == 2
    assert snapshots.restore("good", "--into", "elsewhere")[0] == 2
    whole = Path(archive).read_bytes()
    try:
        Path(archive).write_bytes(whole[:-100] + bytes(100))
        code, said = snapshots.restore("good")
        assert (code, "good.tar.zst.age" in said) == (1, True), said
    finally:
        Path(archive).write_bytes(whole)
    assert boot(box) == running
    assert later in beads(box)


@pytest.mark.sampled(3, family="restores")
def test_a_state_that_does_not_get_ready_gives_way_to_the_old_one(
    snapshots: Snapshots, later: str
) -> None:
    """Exit 6; nothing of the old state is lost, and the generation is bad."""
    code, said = snapshots.restore("broken")
    assert code == 6, said
    assert "The old state runs again." in said
    assert snapshots.box.status()["state"] == "ready"
    assert later in beads(snapshots.box)
    rows = snapshots.box("--json", "generations").json["generations"]
    assert [row["verdict"] for row in rows if row["volumes"]] == ["bad"]


def test_it_is_restored_in_place(snapshots: Snapshots, later: str) -> None:
    """With the admin token of now, as a generation of its own."""
    token = (snapshots.box.state / "token").read_text()
    code, said = snapshots.restore("good")
    assert code == 0, said
    assert (snapshots.bead in beads(snapshots.box), later in beads(snapshots.box)) == (True, False)
    assert (snapshots.box.state / "token").read_text() == token
    assert snapshots.box("events", "verify").code == 0
    types = [
        json.loads(line)["type"]
        for line in snapshots.box("--json", "events", "tail", "-n", "1000").out.splitlines()
    ]
    assert "journal.restored" in types


@pytest.mark.sampled(3, family="restores")
def test_another_box_is_made_of_it(snapshots: Snapshots, other: CliBox) -> None:
    """Beside the first, which goes on; a second time is refused."""
    running = boot(snapshots.box)
    code, said = snapshots.restore("good", "--into", other.name, *UP, box=other)
    assert code == 0, said
    assert snapshots.bead in beads(other)
    assert (other.state / "token").read_text() != (snapshots.box.state / "token").read_text()
    code, said = snapshots.restore("good", "--into", other.name, *UP, box=other)
    assert (code, "that box has a state" in said) == (2, True)
    assert boot(snapshots.box) == running
