"""RC-036: a generation that does not get ready is undone: the old one runs again with all that was
there, exactly one runs, and the bad one is named. Column H."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harness.outcomes import MANIFEST, Ran
from harness.process import ProcessBox
from support.release_tree import make_release

NEVER_READY = {"agentbox/box/boot/main.py": '\nraise SystemExit("no")\n'}
# The mutant: a trial that is content with what it did not look at.
UPGRADE = "agentbox/host/cli/stages/upgrade.py"
CONTENT = {
    UPGRADE: "\ncheck_generation = lambda *_words, **_names: {}\nrelease = lambda *_words: None\n"
}


@dataclass(frozen=True)
class Upgrades:
    """A box with a bead, and folders of releases."""

    box: ProcessBox
    folder: Path

    def json(self, *words: str) -> Any:
        return json.loads(self.box.cli("--json", *words).out)

    def upgrade(self, name: str, appended: Mapping[str, str]) -> Ran:
        """With a release whose files have these texts more."""
        done = make_release(self.folder / name, appended).run(
            *("--manifest", str(self.box.manifest_file), "--timeout", "60", "upgrade"),
            environ={**os.environ, "AGENTBOX_STATE_DIR": str(self.box.folder)},
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def supervisors(self) -> int:
        """How many of them run: each generation has one."""
        lines = []
        for pid in self.box.members():
            try:
                lines.append(Path(f"/proc/{pid}/cmdline").read_bytes())
            except FileNotFoundError:
                continue
        return sum(b"supervisord" in line for line in lines)


@pytest.fixture
def upgrades(process_box: Callable[..., ProcessBox], releases: Path) -> Iterator[Upgrades]:
    """Of one box."""
    box = process_box(manifest=f"{MANIFEST}upgrade = {{ settle_seconds = 0 }}\n")
    up = box.cli("up", "--engine", "process")
    assert up.code == 0, up.err
    assert box.cli("bead", "create", "kept").code == 0
    yield Upgrades(box, releases)
    box.cli("down", "--volumes", "--yes")


def kept(upgrades: Upgrades) -> list[str]:
    """Titles of beads, but for the epic that the box makes for tasks by itself."""
    found = (bead["title"] for bead in upgrades.json("bead", "list"))
    return [title for title in found if title != "tasks"]


def is_undone(upgrades: Upgrades, name: str, appended: Mapping[str, str]) -> None:
    """Exit 6, the generation from before, and everything that was there; the other one is bad."""
    before = upgrades.json("generations")["current"]
    titles = kept(upgrades)
    ran = upgrades.upgrade(name, appended)
    assert ran.code == 6, f"exit code {ran.code} of a release that is never ready: {ran.err}"
    assert f"generation {before} runs again, and nothing was lost" in ran.err
    rows = upgrades.json("generations")
    assert rows["current"] == before
    assert [row["verdict"] for row in rows["generations"]][-1] == "bad"
    assert upgrades.json("status")["state"] == "ready"
    assert upgrades.supervisors() == 1
    assert kept(upgrades) == titles


def test_rc_036_a_generation_that_is_never_ready_is_undone(upgrades: Upgrades) -> None:
    """And a trial that looks at nothing is seen."""
    is_undone(upgrades, "bad", NEVER_READY)
    with pytest.raises(AssertionError, match="exit code 0 of a release that is never ready"):
        is_undone(upgrades, "content", {**NEVER_READY, **CONTENT})
