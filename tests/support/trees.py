"""What is below a folder."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path


def listing(root: Path, latest: datetime) -> dict[str, tuple[object, ...]]:
    """Kind, mode of the owner, time (at most `latest`) and content of all below a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            status = path.lstat()
            content = (
                os.readlink(path)  # noqa: PTH115 - as it is written
                if path.is_symlink()
                else path.read_bytes()
                if path.is_file()
                else None
            )
            mode = 0 if path.is_symlink() else status.st_mode & 0o700
            time = min(status.st_mtime_ns, round(latest.timestamp() * 1000) * 10**6)
            found[str(path.relative_to(root))] = (mode, time, content)
    return found
