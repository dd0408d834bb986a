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

_NAME: Final = re.compile(r"agentbox-[a-z]+-(?P<pid>\d+)(?:\.(?P<ticks>\d+))?-.*")


def temporary_removals() -> Iterator[Removal]:
    """Those of this user whose command has ended."""
    for path in sorted(Path(tempfile.gettempdir()).glob("agentbox-*")):
        match = _NAME.fullmatch(path.name)
        if match is None or _runs(int(match["pid"]), match["ticks"]):
            continue
        if path.lstat().st_uid == os.geteuid():
            yield Removal(
                kind="temporary", name=str(path), size=size_of(path), remove=partial(remove, path)
            )


def _runs(pid: int, ticks: str | None) -> bool:
    """Without ticks another process may have the id by now; then the file stays."""
    now = start_ticks(pid)
    return now != 0 and (ticks is None or now == int(ticks))
