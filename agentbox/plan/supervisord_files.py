"""Files written by the box's supervisord and read by other programs."""

from pathlib import Path

from agentbox.core.paths import Paths


def boot_log(paths: Paths) -> Path:
    """Output of all programs, below a prefix; container engines store it elsewhere."""
    return paths.prefix / "boot.log"


def supervisord_pid(paths: Paths) -> Path:
    """supervisord's pid file."""
    return paths.run / "supervisord.pid"
