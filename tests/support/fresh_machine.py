"""A machine on which a copy of the checkout is started and uninstalled, under the process engine: a
home, and a checkout with an environment that only `uninstall` touches.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import CHECKOUT, environment
from agentbox.host.engines.locations import SYSTEM_ROOT
from agentbox.host.engines.process.box_processes import box_pids

NAME, PORT = "agentbox-e2e-uninstall", 29150
MANIFEST = f"""\
meta = {{ schema_version = 1, name = "{NAME}" }}
api.port = {PORT}
observability.metrics_port = {PORT + 1}
adapters.pods.use = "off"
adapters.memory.use = "off"
"""


@dataclass(frozen=True)
class Machine:
    """The folder with both."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def state_root(self) -> Path:
        return self.home / ".local/state/agentbox"

    @property
    def root(self) -> Path:
        system = SYSTEM_ROOT / NAME
        return system if os.geteuid() == 0 else self.state_root / NAME / "root"

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Starts one command of that checkout."""
        kept = {
            name: value
            for name, value in environment().items()
            if not name.startswith(("AGENTBOX_", "XDG_", "SUDO_"))
        }
        return subprocess.Popen(
            [sys.executable, "-m", "agentbox", *words], cwd=self.checkout, text=True,
            env={**kept, "HOME": str(self.home), "PYTHONPATH": str(self.checkout), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs one command of that checkout to its end."""
        process = self.begin(*words)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def listing(self) -> set[str]:
        """Every path below the machine's directory and of the box, with mode, owner and target, and
        the processes that run from them; the copy's own environment and bytecode are the ones that
        `uninstall` removes."""
        places = (self.folder, self.root) if self.root.exists() else (self.folder,)
        paths = {path for place in places for path in (place, *place.rglob("*"))}
        rows = {_row(path) for path in paths if not {".venv", "__pycache__"} & set(path.parts)}
        return rows | {f"process {pid}" for pid in box_pids(self.root)}


def _row(path: Path) -> str:
    status = path.lstat()
    target = f" -> {path.readlink()}" if path.is_symlink() else ""
    return f"{path} {status.st_mode:o} {status.st_uid}:{status.st_gid}{target}"


@contextmanager
def fresh_machine() -> Iterator[Machine]:
    """Below a directory that every user can enter: as root the box runs as another user."""
    with tempfile.TemporaryDirectory(prefix="abx-uninstall-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        made = Machine(Path(folder))
        made.home.mkdir()
        for name in ("agentbox", "config", "schema"):
            shutil.copytree(CHECKOUT / name, made.checkout / name)  # with bytecode, as is installed
        for name in ("agentbox.sh", "agentbox.lock", "pyproject.toml", "requirements.mcp"):
            shutil.copy2(CHECKOUT / name, made.checkout / name)
        (made.checkout / "agentbox.toml").write_text(MANIFEST)
        (made.checkout / ".venv").mkdir()
        said = made.run("uninstall", "--dry-run").stdout
        assert f"{made.checkout}/.venv" in said
        assert f"{CHECKOUT}/.venv" not in said, "this test would remove the environment it runs in"
        yield made
        made.run("uninstall", "--purge", "--yes")
