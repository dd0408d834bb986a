"""RC-031: after its volumes are gone, a box that is restored from a snapshot answers for each slot
byte for byte what it answered at the cut. Column H."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.agents import client_of
from harness.outcomes import MANIFEST
from harness.process import ProcessBox
from support.filled_box import answers, fill
from support.release_tree import make_release

from agentbox.backup.archive.keys import new_identity

MEMORY = "agentbox/adapters/memory/sqlite/schema.py"
# The mutant: a release that restores every row, and changes what is in some.
REWRITES = "\nMIGRATIONS = (*MIGRATIONS, \"UPDATE entries SET value = '0';\")\n"


@dataclass(frozen=True)
class Wiped:
    """A box without volumes, the file of its snapshot, and what it answered when that was made."""

    box: ProcessBox
    words: tuple[str, ...]
    seq: int
    answers: dict[str, str]

    def wipe(self) -> None:
        down = self.box.cli("down", "--volumes", "--yes")
        assert down.code == 0, down.err
        assert not self.box.root.exists()


@pytest.fixture
def wiped(process_box: Callable[..., ProcessBox], tmp_path: Path) -> Iterator[Wiped]:
    """Its snapshot is of a box that worked."""
    secret, recipient = new_identity()
    (tmp_path / "identity").write_text(f"{secret}\n")
    box = process_box(manifest=f'{MANIFEST}backup = {{ recipients = ["{recipient}"] }}\n')
    up = box.cli("up", "--engine", "process")
    assert up.code == 0, up.err
    with client_of(box) as client:
        fill(client)
        made = box.cli("--json", "backup", "create")
        assert made.code == 0, made.err
        seq = int(json.loads(made.out)["head"]["seq"])
        found = answers(client, seq)
    file = str(tmp_path / "snapshot")
    assert box.cli("backup", "export", "latest", "--out", file).code == 0
    words = ("restore", file, "--identity", str(tmp_path / "identity"), "--yes")
    made_of = Wiped(box, (*words, "--engine", "process"), seq, found)
    made_of.wipe()
    yield made_of
    box.cli("down", "--volumes", "--yes")


def answers_are_those_of_the_cut(wiped: Wiped) -> None:
    """Beads, pods with their bodies, memory with its search, and each record of the journal."""
    with client_of(wiped.box) as client:
        found = answers(client, wiped.seq)
    changed = [name for name in wiped.answers if found.get(name) != wiped.answers[name]]
    detail = [(wiped.answers[name][:600], found.get(name, "")[:600]) for name in changed]
    assert changed == [], f"other than at the cut: {', '.join(changed)}: {detail}"
    assert set(found) == set(wiped.answers)


def test_rc_031_a_wiped_box_is_restored_byte_for_byte(wiped: Wiped, releases: Path) -> None:
    """And one that a release restores which changes some of it is seen."""
    restored = wiped.box.cli(*wiped.words)
    assert restored.code == 0, restored.err
    answers_are_those_of_the_cut(wiped)
    assert wiped.box.cli("events", "verify").code == 0

    wiped.wipe()
    release = make_release(releases / "rewrites", {MEMORY: REWRITES})
    given = ("--manifest", str(wiped.box.manifest_file), *wiped.words)
    done = release.run(*given, environ={**os.environ, "AGENTBOX_STATE_DIR": str(wiped.box.folder)})
    assert done.returncode == 0, done.stderr
    with pytest.raises(AssertionError, match="other than at the cut: memory"):
        answers_are_those_of_the_cut(wiped)
