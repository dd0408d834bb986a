"""A restore of a container: other volumes are mounted, and the snapshots stay."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from cli_box import CliBox

from agentbox.backup.archive.keys import new_identity


def mounted(box: CliBox) -> dict[str, str]:
    """The volume of each folder of the container."""
    rows = box.container()["Mounts"]
    return {row["Destination"]: row["Name"] for row in rows if row["Type"] == "volume"}


@pytest.mark.sampled(3, family="restores")
def test_a_container_gets_the_restored_volumes(other: CliBox, tmp_path: Path) -> None:
    """The old ones are kept, and are mounted no more."""
    secret, recipient = new_identity()
    identity = tmp_path / "identity"
    identity.write_text(f"{secret}\n")
    other.write(f'backup.recipients = ["{recipient}"]\n')
    other.up("--engine", "docker")
    kept = other("bead", "create", "at the cut").out.strip()
    assert other("backup", "create").code == 0
    later = other("bead", "create", "after the cut").out.strip()
    before = mounted(other)
    ran = other("restore", "latest", "--yes", "--identity", str(identity), timeout=400)
    assert ran.code == 0, ran.err
    after = mounted(other)
    assert after["/var/lib/agentbox"] == f"{other.name}-state-g2"
    assert after["/var/lib/agentbox/branches"] == f"{other.name}-branches-g2"
    assert after["/var/lib/agentbox/backups"] == before["/var/lib/agentbox/backups"]
    found = {bead["id"] for bead in other("--json", "bead", "list").json}
    assert (kept in found, later in found) == (True, False)
    assert json.loads(other("--json", "backup", "list").out)
    volumes = subprocess.run(
        ["docker", "volume", "ls", "--quiet"], capture_output=True, text=True, check=True
    )
    assert before["/var/lib/agentbox"] in volumes.stdout.split()
