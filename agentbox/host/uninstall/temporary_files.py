"""Temporary directories of killed commands: their names begin with `agentbox-`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from agentbox.host.uninstall.files import remove, size_of
from agentbox.host.uninstall.removal import Removal

_PREFIXES: Final = tuple(
    f"agentbox-{name}-"
    for name in ("apt", "commits", "flake", "marks", "npm", "pip", "seed", "verify")
)


def temporary_removals() -> Iterator[Removal]:
    """Those of this user in the directory of temporary files."""
    for path in sorted(Path(tempfile.gettempdir()).glob("agentbox-*")):
        if path.name.startswith(_PREFIXES) and path.lstat().st_uid == os.geteuid():
            yield Removal(
                kind="temporary", name=str(path), size=size_of(path), remove=partial(remove, path)
            )
