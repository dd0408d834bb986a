"""npm tarballs by name and version, through the host's npm: its registry and credentials; no script
is run.
"""

import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from agentbox.core.paths import temporary_prefix
from agentbox.host.network.diagnosis import Cause, diagnose
from agentbox.host.packages.errors import (
    FetchError,
    NoNetworkError,
    NotServedError,
    NotTrustedError,
)
from agentbox.host.packages.host_command import CommandResult, run

PackageVersion = tuple[str, str]  # name, exact version
BATCH = 16  # packages per call of npm, which takes most of a second to start

_NOT_FOUND_CODES = ("ETARGET", "E404", "ENOVERSIONS")
_NETWORK_CODES = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "ERR_SOCKET_TIMEOUT",
)
_PREFIX = re.compile(r"^npm (?:error|ERR!) ?")


def run_npm(directory: Path, *arguments: str) -> CommandResult:
    """Runs npm in a directory. Raises PrerequisiteError without npm."""
    return run(["npm", *arguments, "--ignore-scripts", "--loglevel=error"], cwd=directory)


def failure_reason(result: CommandResult) -> str:
    """Return the first sentence of npm's error output that is neither a code nor a log path."""
    messages = [
        _PREFIX.sub("", line).strip() for line in result.err.splitlines() if _PREFIX.match(line)
    ]
    sentences = [
        line for line in messages if line and not line.startswith(("code ", "A complete log", "/"))
    ]
    return sentences[0] if sentences else result.reason


def cause_at_registry() -> Cause | None:
    """What a certificate or a proxy has to do with a failure of npm."""
    settings = {
        name: run(["npm", "config", "get", name]).out.strip().replace("null", "")
        for name in ("registry", "cafile", "https-proxy")
    }
    return diagnose(settings["registry"], bundle=settings["cafile"], proxy=settings["https-proxy"])


class NpmPacker:
    """Fetches tarballs in batches: the first request for a package of a batch fetches all of it,
    others wait. Thread-safe.
    """

    def __init__(self, packages: Sequence[PackageVersion]) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix=temporary_prefix("npm"))
        rows = sorted(set(packages))
        batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        self._batch_of = {package: batch for batch in batches for package in batch}
        self._locks = {batch[0]: threading.Lock() for batch in batches}

    def file(self, package: PackageVersion) -> Path:
        """Return the path of its tarball, valid for the lifetime of this object. Raises
        NotServedError (exit 5) if a version of the batch is not served, NoNetworkError and
        FetchError (exit 4).
        """
        batch = self._batch_of[package]
        with self._locks[batch[0]]:
            if not self._path(package).exists():
                self._fetch(batch)
        return self._path(package)

    def copy(self, package: PackageVersion, target: Path) -> None:
        """Copies the tarball to `target`."""
        shutil.copyfile(self.file(package), target)

    def _path(self, package: PackageVersion) -> Path:
        return Path(self._directory.name) / tarball_name(*package)

    def _fetch(self, batch: Sequence[PackageVersion]) -> None:
        target = Path(self._directory.name)
        result = run_npm(
            target,
            "pack",
            *(f"{name}@{version}" for name, version in batch),
            f"--pack-destination={target}",
        )
        missing = [package for package in batch if not self._path(package).exists()]
        if result.code == 0 and not missing:
            return
        if any(code in result.err for code in _NOT_FOUND_CODES):
            names = tuple(
                name for name, version in missing if f"{name}@{version}" in result.err
            ) or (missing[0][0],)
            raise NotServedError(
                f"cannot fetch {names[0]}: {failure_reason(result)}",
                f"Run `agentbox lock --upgrade {names[0]}`.",
                names,
            )
        if cause := cause_at_registry():
            raise NotTrustedError(
                f"cannot download {missing[0][0]} {missing[0][1]}: {cause.why}", cause.hint
            )
        error_class = (
            NoNetworkError if any(code in result.err for code in _NETWORK_CODES) else FetchError
        )
        raise error_class(
            f"cannot download {missing[0][0]} {missing[0][1]}: {failure_reason(result)}",
            "Connect to the network and try again.",
        )


def tarball_name(name: str, version: str) -> str:
    """Return the file name that `npm pack` uses (npm-pack(1)): the scope joined by a dash."""
    return f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
