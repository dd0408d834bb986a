"""docs/howto/restore-a-box.md, followed on a real box of the process engine."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from cli_box import CliBox
from support.staged_state import stage

from agentbox.backup.archive.keys import new_identity
from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.host.engines.state import BoxState

PAGE = CHECKOUT / "docs/howto/restore-a-box.md"
UP = ("--engine", "process")


def commands() -> list[list[str]]:
    """The words after `./agentbox.sh` of each line of the page's blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line.removeprefix("./agentbox.sh ")) for line in lines]


@pytest.mark.sampled(3, family="pages that are played")
def test_each_command_of_the_page_works(cli_box: CliBox, other: CliBox, tmp_path: Path) -> None:
    """`latest` is a snapshot of the box; names of files become those of this test."""
    secret, recipient = new_identity()
    (tmp_path / "recovery-sheet.txt").write_text(f"{secret}\n")
    cli_box.up(*UP)
    record = BoxState(cli_box.state).running_record()
    stage(Paths(Path(record.root)), tmp_path / "staged", snapshot="latest-copy", box=cli_box.name)
    folder = Paths(Path(record.root)).backups
    ArchiveRepository(folder, [recipient]).write(tmp_path / "staged")
    if os.geteuid() == 0:  # as the box writes it
        for path in (folder, *folder.rglob("*")):
            os.chown(path, BOX_UID, BOX_UID)
    given = {
        "recovery-sheet.txt": str(tmp_path / "recovery-sheet.txt"),
        "latest-copy.tar.zst.age": str(folder / "latest-copy.tar.zst.age"),
        "other": other.name,
    }
    seen = set()
    for words in commands():
        box = other if words[0] == "--manifest" else cli_box
        words = words[2:] if words[0] == "--manifest" else words
        named = [given.get(word, word) for word in words]
        if "--into" in named:
            named += UP
        ran = box(*named, timeout=300)
        assert ran.code == 0, f"{words}: {ran.err}"
        seen.add(words[0])
    assert seen == {"backup", "restore"}
    assert cli_box.status()["state"] == other.status()["state"] == "ready"
