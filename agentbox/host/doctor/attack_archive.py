"""The attack suite as one archive that an agent reads from stdin, so that it is the caller's
version and runs where an agent cannot read the installed package."""

import io
import zipfile
from typing import Final

from agentbox.core.paths import CHECKOUT

# All modules that the attacks import.
_SOURCE_PATTERNS: Final = (
    "__init__.py",
    "core/__init__.py",
    "core/errors.py",
    "core/paths.py",
    "sandbox/__init__.py",
    "sandbox/attacks/*.py",
    "sandbox/attacks/cases/*.py",
    "sandbox/seccomp/__init__.py",
    "sandbox/seccomp/syscalls.py",
)
# Writes the archive to a temporary directory of the agent and runs it.
_BOOTSTRAP: Final = (
    "import os,runpy,sys,tempfile;"
    "at=os.path.join(tempfile.mkdtemp(),'attack.zip');"
    "open(at,'wb').write(sys.stdin.buffer.read());"
    "sys.path.insert(0,at);"
    "runpy.run_module('agentbox.sandbox.attacks',run_name='__main__',alter_sys=True)"
)


def attack_argv(*arguments: str) -> tuple[str, ...]:
    """The command of the agent; the archive is its stdin."""
    return ("python3", "-I", "-c", _BOOTSTRAP, *arguments)


def build_archive() -> bytes:
    """Builds the archive; equal sources give equal bytes."""
    root, target = CHECKOUT / "agentbox", io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as zip_file:
        files = {
            str(path.relative_to(root.parent)): path.read_bytes()
            for pattern in _SOURCE_PATTERNS
            for path in root.glob(pattern)
        }
        for name, content in sorted(files.items()):
            zip_file.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED
            )
    return target.getvalue()
