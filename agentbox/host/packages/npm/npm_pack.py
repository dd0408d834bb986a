"""npm tarballs by name and version, through the host's own npm: its registry, its credentials, no script run."""

import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from agentbox.host.packages.errors import FetchError, NoNetworkError, NotServedError
from agentbox.host.packages.tool import Result, run

Package = tuple[str, str]  # name, exact version
BATCH = 16  # packages a call of npm, which takes most of a second to start

_GONE = ("ETARGET", "E404", "ENOVERSIONS")
_UNREACHED = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET_TIMEOUT")
_PREFIX = re.compile(r"^npm (?:error|ERR!) ?")


def npm(folder: Path, *arguments: str) -> Result:
    """One call of npm in a folder. Raises PrerequisiteError without npm."""
    return run(["npm", *arguments, "--ignore-scripts", "--loglevel=error"], cwd=folder)


def why(result: Result) -> str:
    """The first sentence of npm's own account that is no code and no path of a log."""
    said = [_PREFIX.sub("", line).strip() for line in result.err.splitlines() if _PREFIX.match(line)]
    sentences = [line for line in said if line and not line.startswith(("code ", "A complete log", "/"))]
    return sentences[0] if sentences else result.why


class Packer:
    """Fetches tarballs a batch at a time: whoever asks first for one of a batch waits for all of it, the others find
    theirs. Safe to call from several threads."""

    def __init__(self, packages: Sequence[Package]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agentbox-npm-")
        rows = sorted(set(packages))
        batches = [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]
        self._batch_of = {package: batch for batch in batches for package in batch}
        self._locks = {batch[0]: threading.Lock() for batch in batches}

    def file(self, package: Package) -> Path:
        """Where its tarball is, for as long as this object lives. Raises NotServedError (exit 5) when a version of the
        batch is gone, NoNetworkError and FetchError (exit 4)."""
        batch = self._batch_of[package]
        with self._locks[batch[0]]:
            if not self._path(package).exists():
                self._fetch(batch)
        return self._path(package)

    def copy(self, package: Package, target: Path) -> None:
        """The same into a file of the caller's."""
        shutil.copyfile(self.file(package), target)

    def _path(self, package: Package) -> Path:
        return Path(self._folder.name) / tarball_name(*package)

    def _fetch(self, batch: Sequence[Package]) -> None:
        into = Path(self._folder.name)
        done = npm(into, "pack", *(f"{name}@{version}" for name, version in batch), f"--pack-destination={into}")
        absent = [package for package in batch if not self._path(package).exists()]
        if done.code == 0 and not absent:
            return
        if any(code in done.err for code in _GONE):
            names = tuple(name for name, version in absent if f"{name}@{version}" in done.err) or (absent[0][0],)
            raise NotServedError(
                f"cannot fetch {names[0]}: {why(done)}", f"Run `agentbox lock --upgrade {names[0]}`.", names
            )
        kind = NoNetworkError if any(code in done.err for code in _UNREACHED) else FetchError
        raise kind(f"cannot download {absent[0][0]} {absent[0][1]}: {why(done)}", "Connect and try again.")


def tarball_name(name: str, version: str) -> str:
    """The name that `npm pack` gives (npm-pack(1)): the scope joined by a dash."""
    return f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
