"""Seccomp profiles, copied unchanged beside compose."""

import re
from pathlib import Path

from agentbox.core.data_files import config_dir
from agentbox.plan.render.errors import RenderError

_STEM = re.compile(r"[a-z][a-z0-9-]{0,63}")


def seccomp_text(stem: str = "agentbox", directory: Path | None = None) -> str:
    """`config/seccomp/<stem>.json`. Raises RenderError if it does not exist."""
    path = (directory or config_dir() / "seccomp") / f"{stem}.json"
    if not _STEM.fullmatch(stem) or not path.is_file():
        raise RenderError(
            f"cannot render seccomp file {stem!r}: it is not in config/seccomp",
            "name an existing file",
        )
    return path.read_text(encoding="utf-8")
