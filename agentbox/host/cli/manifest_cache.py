"""Cache of the facts that most commands need of a manifest, so that they need not parse it.

Stored in `manifests.json` in the state root. An entry is valid while path, device, inode, size
and both times of the manifest file are unchanged. Write errors are ignored.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.core.paths import CHECKOUT

FILE_NAME: Final = "manifests.json"
MAX_ENTRIES: Final = 32  # most recently used manifests
_CLOCK_TICK_NS: Final = (
    50_000_000  # changes within one tick of the file system's clock have equal times
)
_NAME_PATTERN: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_SOURCES: Final = (
    "agentbox/manifest",
    "agentbox/plan",
    "agentbox/policy",
)  # sources that determine `Plan.apply`, beside the manifest


@dataclass(frozen=True)
class ManifestInfo:
    """`meta.name` of a manifest, and `Plan.apply` with the digest of the code that computed it;
    None until it is requested."""

    name: str
    apply: Mapping[str, str] | None = None
    code: str = ""


class ManifestCache:
    """The entry of one manifest. The file's identity is taken at creation, before the manifest is
    read."""

    def __init__(self, directory: Path, manifest: Path) -> None:
        self._path, self._key = directory / FILE_NAME, str(manifest.absolute())
        self._identity = _identity(manifest)

    def read(self) -> ManifestInfo | None:
        """Returns the cached facts of this file, or None."""
        entry = self._read_entries().get(self._key)
        if (
            self._identity is None
            or not isinstance(entry, dict)
            or entry.get("identity") != self._identity
        ):
            return None
        name, apply = entry.get("name"), entry.get("apply")
        if not isinstance(name, str) or not _NAME_PATTERN.fullmatch(name):
            return None
        return ManifestInfo(
            name, apply if isinstance(apply, dict) else None, str(entry.get("code"))
        )

    def store(self, info: ManifestInfo) -> None:
        """Stores the facts, unless the file is too new for its times to show a later change."""
        if (
            self._identity is None
            or time.time_ns() - max(self._identity[-2:]) < _CLOCK_TICK_NS
            or not self._path.parent.is_dir()
        ):
            return
        from agentbox.core.files.atomic_text import write_atomically
        from agentbox.host.engines.sudo_user import chown_file

        others = {key: entry for key, entry in self._read_entries().items() if key != self._key}
        retained = dict(list(others.items())[-MAX_ENTRIES + 1 :])
        entry = {
            "identity": self._identity,
            "name": info.name,
            "apply": info.apply,
            "code": info.code,
        }
        with suppress(AgentboxError, OSError):
            write_atomically(self._path, json.dumps({**retained, self._key: entry}))
            chown_file(self._path)

    def _read_entries(self) -> dict[str, Any]:
        try:
            entries = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}


def with_apply(info: ManifestInfo, apply: Mapping[str, str]) -> ManifestInfo:
    """Returns the facts with `apply` as computed by the current code."""
    return replace(info, apply=dict(apply), code=code_identity())


def code_identity() -> str:
    """Digest of identity, size and time of every source file that interprets a manifest."""
    from hashlib import sha256

    digest = sha256()
    for name in _SOURCES:
        for directory, subdirectories, files in os.walk(CHECKOUT / name):
            subdirectories[:] = sorted(child for child in subdirectories if child != "__pycache__")
            for file in sorted(files):
                path = f"{directory}/{file}"
                status = Path(path).stat()
                digest.update(
                    f"{path}\0{status.st_ino} {status.st_size} {status.st_mtime_ns}\n".encode()
                )
    return digest.hexdigest()


def _identity(manifest: Path) -> list[int] | None:
    """Device, inode, size and times; None for a missing or irregular file."""
    try:
        status = manifest.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
