"""The repair for a program that is missing: its Debian package, installed as `up` does it."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from agentbox.host.doctor.row import Repair
from agentbox.host.engines import packages
from agentbox.host.engines.sudo_user import make_folder


def installation(wanted: Sequence[str], log: Path) -> Repair | None:
    """None where this user cannot install: no root, no apt, nothing missing. `log` gets what apt says."""
    if not wanted or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    return Repair(f"Install {', '.join(wanted)} with apt?", lambda: _install(wanted, log))


def _install(wanted: Sequence[str], log: Path) -> str:
    make_folder(log.parent)
    agreed = packages.offer(wanted)
    packages.install(agreed, log, lambda: None)
    return f"installed {', '.join(agreed.all)}"
