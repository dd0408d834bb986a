"""Another release of agentbox: a copy of this tree with changed files and an environment of its
own, that a process-engine box can run.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentbox.core.paths import CHECKOUT

_COPIED = ("agentbox", "config", "schema", "agentbox.lock", "agentbox.toml", "pyproject.toml")


@dataclass(frozen=True)
class ReleaseTree:
    """`python` runs its command and its boxes."""

    directory: Path

    @property
    def python(self) -> Path:
        return self.directory / "venv" / "bin" / "python"

    def run(
        self, *words: str, environ: Mapping[str, str], script: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs its command, or a script with the same words, to the end."""
        argv = [str(self.python), *([str(script)] if script else ["-m", "agentbox"]), *words]
        return subprocess.run(
            argv,
            cwd=self.directory,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )


def make_release(directory: Path, appended: Mapping[str, str]) -> ReleaseTree:
    """Copies this tree, with its bytecode, which a box's user could not write, and appends text to
    files of it, by their paths.
    """
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    for name in _COPIED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, directory / name)
        else:
            shutil.copy2(source, directory / name)
    for name, text in appended.items():
        with (directory / name).open("a") as stream:
            stream.write(text)
    venv = directory / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(venv)], check=True
    )
    packages = sysconfig.get_path("purelib")
    target = Path(sysconfig.get_path("purelib", vars={"base": str(venv), "platbase": str(venv)}))
    (target / "release.pth").write_text(f"{directory}\n{packages}\n")
    for parent, folders, files in os.walk(directory):
        for name in (*folders, *files):
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.is_dir() else 0))
    return ReleaseTree(directory)
