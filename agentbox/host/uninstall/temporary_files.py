"""Temporary files of killed commands. Their names have the command: `agentbox-LABEL-PID.TICKS-...`
(`agentbox.core.paths.temporary_prefix`), or the process id alone if agentbox.sh made them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.host.engines.docker.daemon import start_ticks
from agentbox.host.uninstall.files import remove, size_of
from agentbox.host.uninstall.removal import Removal

LABELS: Final = ("backup", "commits", "flake", "marks", "npm", "pip", "seed", "verify")
"""Of the directories that commands make by `temporary_prefix`."""
_DIRECTORY: Final = re.compile(
    rf"agentbox-(?:{'|'.join(LABELS)})-(?P<pid>\d+)\.(?P<ticks>\d+)-[a-z0-9_]{{8}}"
)  # the end is the one of `tempfile.mkdtemp`
_LOG: Final = re.compile(r"agentbox-apt-(?P<pid>\d+)-[A-Za-z0-9]{6}")  # of mktemp, in agentbox.sh


def temporary_removals() -> Iterator[Removal]:
    """Those of this user whose command has ended."""
    for path in sorted(Path(tempfile.gettempdir()).glob("agentbox-*")):
        match = (_DIRECTORY if path.is_dir() else _LOG).fullmatch(path.name)
        if match is None or path.is_symlink():
            continue
        if _runs(int(match["pid"]), match.groupdict().get("ticks")):
            continue
        if path.lstat().st_uid == os.geteuid():
            yield Removal(
                kind="temporary", name=str(path), size=size_of(path), remove=partial(remove, path)
            )


def _runs(pid: int, ticks: str | None) -> bool:
    """Without ticks another process may have the id by now; then the file stays."""
    now = start_ticks(pid)
    return now != 0 and (ticks is None or now == int(ticks))
