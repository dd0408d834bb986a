"""The attack as one archive that an agent reads from its standard input: so that it is the caller's own, whatever box it
is sent to, and runs where an agent may not read the program's own folder."""

import io
import zipfile
from typing import Final

from agentbox.core.paths import CHECKOUT

# All that the attack imports, and nothing else of this program.
_SOURCE_PATTERNS: Final = (
    "__init__.py",
    "core/__init__.py",
    "core/errors.py",
    "core/paths.py",
    "sandbox/__init__.py",
    "sandbox/attacks/*.py",
    "sandbox/seccomp/__init__.py",
    "sandbox/seccomp/syscalls.py",
)
# Written to the agent's own folder and run from there.
_BOOTSTRAP: Final = (
    "import os,runpy,sys,tempfile;"
    "at=os.path.join(tempfile.mkdtemp(),'attack.zip');"
    "open(at,'wb').write(sys.stdin.buffer.read());"
    "sys.path.insert(0,at);"
    "runpy.run_module('agentbox.sandbox.attacks',run_name='__main__',alter_sys=True)"
)


def attack_argv(*arguments: str) -> tuple[str, ...]:
    """What an agent runs; the archive is its input."""
    return ("python3", "-I", "-c", _BOOTSTRAP, *arguments)


def build_archive() -> bytes:
    """The same bytes for the same sources."""
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
