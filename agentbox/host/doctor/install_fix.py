"""The fix for a missing program: installs its Debian package, as `up` does."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from agentbox.host.doctor.check_result import Fix
from agentbox.host.engines import system_packages
from agentbox.host.engines.sudo_user import make_directory


def install_fix(names: Sequence[str], log: Path) -> Fix | None:
    """None if nothing is missing or this user cannot install. apt's output goes to `log`."""
    if not names or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    return Fix(f"Install {', '.join(names)} with apt?", lambda: _install(names, log))


def _install(names: Sequence[str], log: Path) -> str:
    make_directory(log.parent)
    install_plan = system_packages.plan_install(names)
    system_packages.install(install_plan, log, lambda: None)
    return f"installed {', '.join(install_plan.all_packages)}"
