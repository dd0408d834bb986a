"""docs/howto/back-up-a-box.md, followed literally: with age, zstd and tar, on a real API."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import tables
from support.api_box import TOKEN, ApiBox
from tools.skipping import machine_lacks

from agentbox.core.paths import CHECKOUT
from agentbox.host.engines.state import BoxRecord, BoxState

PAGE = CHECKOUT / "docs/howto/back-up-a-box.md"
NAME = "box-of-the-page"


@pytest.fixture
def prefix() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page, `$` before it, with the lines that follow it in its block."""
    found: list[tuple[str, list[str]]] = []
    for _language, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and block.startswith("$ "):
                found[-1][1].append(line)
    return found


def run(folder: Path, command: str) -> str:
    """What one command of the page prints, in a folder with `agentbox.sh` and a manifest."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "AGENTBOX_STATE_DIR": str(folder / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def expect(printed: str, shown: list[str], id: str) -> str:
    """Each line of the page is printed, in this order; the id of the snapshot."""
    at = 0
    for line in shown:
        pattern = ".*".join(map(re.escape, line.split("…")))
        pattern = re.sub(r"\bID\b", f"(?P<id>{re.escape(id) if id else '[^ ]+'})", pattern)
        match = re.compile(f"^{pattern}$", re.MULTILINE).search(printed, at)
        assert match is not None, f"no line {line!r} in\n{printed[at:]}"
        id, at = match.groupdict().get("id") or id, match.end()
    return id


def test_the_page_is_true(prefix: Path) -> None:
    """Each line that the page shows is printed; the box has the recipients that `init` wrote."""
    for tool in ("age", "zstd", "tar"):
        if shutil.which(tool) is None:
            machine_lacks(f"{tool}, with which the page opens a snapshot")
    folder = prefix / "folder"
    folder.mkdir()
    (folder / "agentbox.toml").write_text(f'[meta]\nschema_version = 1\nname = "{NAME}"\n')
    (folder / "agentbox.sh").write_text(f'#!/bin/sh\nexec {sys.executable} -m agentbox "$@"\n')
    (folder / "agentbox.sh").chmod(0o755)
    (set_up, shown), *others = steps()
    expect(run(folder, set_up), shown, "")
    table = tomllib.loads((folder / "agentbox.toml").read_text())["backup"]
    backup = tables.backup(recipients=tuple(table["recipients"]), min_free=1 << 20)
    with ApiBox(prefix / "box", orchestrator=False, backup=backup) as box:
        state = BoxState(folder / "state" / NAME)
        state.make()
        place = str(state.compose_dir)
        state.save_record(BoxRecord(engine="docker", name=NAME, api_url=box.url, folder=place))
        state.token_file.write_text(TOKEN)
        (folder / "backups").symlink_to(box.paths.backups)
        with box.client() as client:
            client.beads.create_epic("kept")
            client.pods.write("notes/one", b"body", content_type="text/plain")
        id = ""
        for command, lines in others:
            id = expect(run(folder, command), lines, id)
    assert len(others) == 10
