"""Files that the supervisord of a box writes and other programs read."""

from pathlib import Path

from agentbox.core.paths import Paths


def boot_log(paths: Paths) -> Path:
    """What all programs print, below a prefix; a container engine keeps it elsewhere."""
    return paths.prefix / "boot.log"


def supervisord_pid(paths: Paths) -> Path:
    """What supervisord writes its process id to."""
    return paths.run / "supervisord.pid"
