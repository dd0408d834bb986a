"""A checkout of the product with few packages, whose apt and pip know a mirror on loopback only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from harness.mirror import Mirror

_REPOSITORY = Path(__file__).resolve().parents[3]
_CORE = 'sources = ["debian"]\nsystems = ["x86_64-linux", "aarch64-linux"]\ndebian = {debian}\n'
_PYPROJECT = """\
[project]
name = "agentbox"
dependencies = {runtime}
[project.optional-dependencies]
host = {few}
mcp = {few}
test = {few}
"""


class Checkout:
    """`run` is the command line of this checkout; everything it writes is below `folder`."""

    def __init__(self, folder: Path, mirror: Mirror) -> None:
        self.folder, self.source = folder, folder / "checkout"
        self.source.mkdir()
        copied = [str(_REPOSITORY / name) for name in ("agentbox", "config", "schema")]
        # With the compiled modules: they stay valid.
        subprocess.run(["cp", "--archive", *copied, str(self.source)], check=True)
        for feature in (self.source / "config/features").iterdir():
            if feature.name not in ("core.toml", "build.toml"):
                feature.unlink()
        self.manifest = self.source / "agentbox.toml"
        self.write_manifest()
        self.use(mirror.url)
        self.path = os.environ["PATH"]

    @property
    def lock(self) -> Path:
        return self.source / "agentbox.lock"

    def requirement_files(self) -> list[Path]:
        """What `lock` writes beside the lock, for pip."""
        return sorted(self.source.glob("requirements.*"))

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def write_manifest(self, image: str = "") -> None:
        self.manifest.write_text(
            f'[meta]\nschema_version = 1\nname = "rc-030"\n[image]\n{image}\n[adapters]\npods.use = "off"\nmemory.use = "off"\n'
        )

    def want(
        self, *, core: list[str], build: list[str], runtime: list[str], pypi: list[str]
    ) -> None:
        """Sets the packages of the box."""
        features = self.source / "config/features"
        (features / "core.toml").write_text(_CORE.format(debian=json.dumps(core)))
        (features / "build.toml").write_text(
            _CORE.format(debian=json.dumps(build)) + f"pypi = {json.dumps(pypi)}\n"
        )
        project = _PYPROJECT.format(runtime=json.dumps(runtime), few=json.dumps(pypi[:1]))
        (self.source / "pyproject.toml").write_text(project)

    def use(self, url: str | None) -> None:
        """The mirror that this host's apt and pip name; None: apt names none of Debian's."""
        sources = self.folder / "sources.list"
        debian = f"deb [trusted=yes] {url}/debian trixie main\n" if url else ""
        sources.write_text(
            debian + "deb [trusted=yes] http://packages.example.invalid/apt nodistro main\n"
        )
        conf = f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\nAcquire::Retries "0";\n'
        (self.folder / "apt.conf").write_text(conf)
        (self.folder / "pip.conf").write_text(
            f"[global]\nindex-url = {url}/simple\nretries = 0\n" if url else ""
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        """Runs the command line; its whole output. Fails unless it ends with `code`."""
        done = self.start(*arguments)
        said, _ = done.communicate(timeout=120)
        assert done.returncode == code, f"exit {done.returncode}, wanted {code}:\n{said}"
        return said

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "agentbox", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.source,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _environment(self) -> dict[str, str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PIP_", "AGENTBOX_"))
        }
        return kept | {
            "PATH": self.path,
            "PYTHONPATH": str(self.source),
            "APT_CONFIG": str(self.folder / "apt.conf"),
            "PIP_CONFIG_FILE": str(self.folder / "pip.conf"),
            "AGENTBOX_STATE_DIR": str(self.folder / "state"),
            "AGENTBOX_CACHE_DIR": str(self.cache),
            "NO_PROXY": "127.0.0.1",
        }


def unlocked(folder: Path, mirror: Mirror) -> Checkout:
    """A checkout with the packages git, python3, uvicorn and installer."""
    made = Checkout(folder, mirror)
    made.want(core=["git", "python3"], build=["python3"], runtime=["uvicorn"], pypi=["installer"])
    return made
