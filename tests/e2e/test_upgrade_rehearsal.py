"""An upgrade is rehearsed on a copy, in a throw-away box, while the box and its agents work."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cli_box import CliBox, Ran, end, wait_for
from rehearsal_traces import traces
from support.release_tree import make_release

BEADS = "agentbox/adapters/beads/sqlite/schema.py"
ADDS = {BEADS: '\nMIGRATIONS = (*MIGRATIONS, "CREATE TABLE added (x INTEGER) STRICT;")\n'}
LOSES = {BEADS: '\nMIGRATIONS = (*MIGRATIONS, "DELETE FROM tags; DELETE FROM beads;")\n'}


@pytest.fixture
def folder() -> Iterator[Path]:
    """For releases: every user can reach it, unlike the folders of pytest."""
    made = Path(tempfile.mkdtemp(prefix="agentbox-e2e-releases-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def rehearse(box: CliBox, folder: Path, appended: Mapping[str, str]) -> Ran:
    """With a release whose files have these texts more."""
    done = make_release(folder, appended).run(
        *("--manifest", str(box.manifest), "--timeout", "40", "--json", "upgrade", "--rehearse"),
        environ=box.environ(),
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_a_rehearsed_upgrade_changes_nothing(cli_box: CliBox, folder: Path, tmp_path: Path) -> None:
    """Of a good release, and of one that loses a bead; an agent works meanwhile, and is not ended
    with the copy."""
    cli_box.write("upgrade.settle_seconds = 0\n")
    cli_box.up("--engine", "process")
    kept = cli_box("bead", "create", "kept").out.strip()
    before, boot = cli_box("--json", "generations").json, cli_box.status()["boot_id"]
    working = cli_box.begin("run", "--", "sleep", "600", out=tmp_path / "out")
    wait_for(lambda: cli_box("--json", "agent", "list").json, 30, "the agent runs")

    good = rehearse(cli_box, folder / "good", ADDS)
    assert good.code == 0, good.err
    assert good.json == {
        "changed": False,
        "good": True,
        "migrates": ["beads/beads.db"],
        "degraded": [],
    }
    bad = rehearse(cli_box, folder / "bad", LOSES)
    assert bad.code == 6, bad.err
    error = json.loads(bad.err.splitlines()[-1])
    assert "the new generation is not good: beads before it: " in error["error"]
    assert "the box was not touched" in error["hint"]

    assert (cli_box("--json", "generations").json, cli_box.status()["boot_id"]) == (before, boot)
    assert kept in {bead["id"] for bead in cli_box("--json", "bead", "list").json}
    assert working.poll() is None
    end(working, signal.SIGTERM, group=True)
    working.wait(timeout=60)
    assert traces(cli_box) == []
