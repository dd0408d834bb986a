"""What most commands need of a manifest, kept by the identity of its file: they read neither TOML nor the model.

`manifests.json` in the folder of all boxes' state. An entry counts while path, device, inode, size and both times of the
file are those it was made of; one that cannot be written costs time and nothing else.
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

FILE: Final = "manifests.json"
KEPT: Final = 32  # manifests, those used last
_TICK_NS: Final = 50_000_000  # a change within one tick of the file system's clock leaves no other time
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_READERS: Final = (
    "agentbox/manifest",
    "agentbox/plan",
    "agentbox/policy",
    "schema",
)  # what `Plan.apply` comes from, beside the manifest


@dataclass(frozen=True)
class Facts:
    """Of one manifest: its `meta.name`, and `Plan.apply` with the code that made it, None until somebody asked."""

    name: str
    apply: Mapping[str, str] | None = None
    code: str = ""


class ManifestIndex:
    """The entry of one manifest. The file is looked at when this is made, hence before the manifest is read."""

    def __init__(self, folder: Path, manifest: Path) -> None:
        self._path, self._key = folder / FILE, str(manifest.absolute())
        self._identity = _identity(manifest)

    def read(self) -> Facts | None:
        """What is known of this very file; None when nothing is."""
        entry = self._entries().get(self._key)
        if self._identity is None or not isinstance(entry, dict) or entry.get("identity") != self._identity:
            return None
        name, apply = entry.get("name"), entry.get("apply")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return None
        return Facts(name, apply if isinstance(apply, dict) else None, str(entry.get("code")))

    def keep(self, facts: Facts) -> None:
        """From now on `read` gives these, unless the file is too young to tell whether it changes."""
        if (
            self._identity is None
            or time.time_ns() - max(self._identity[-2:]) < _TICK_NS
            or not self._path.parent.is_dir()
        ):
            return
        from agentbox.core.files.atomic_text import write_atomically
        from agentbox.host.engines.sudo_user import hand_over_file

        others = {key: entry for key, entry in self._entries().items() if key != self._key}
        kept = dict(list(others.items())[-KEPT + 1 :])
        entry = {"identity": self._identity, "name": facts.name, "apply": facts.apply, "code": facts.code}
        with suppress(AgentboxError, OSError):
            write_atomically(self._path, json.dumps({**kept, self._key: entry}))
            hand_over_file(self._path)

    def _entries(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def with_apply(facts: Facts, apply: Mapping[str, str]) -> Facts:
    """The same with what the code as it is now makes of the manifest."""
    return replace(facts, apply=dict(apply), code=code_identity())


def code_identity() -> str:
    """Another one whenever a file is that decides what a manifest means."""
    from hashlib import sha256

    said = sha256()
    for name in _READERS:
        for folder, folders, files in os.walk(CHECKOUT / name):
            folders[:] = sorted(one for one in folders if one != "__pycache__")
            for file in sorted(files):
                path = f"{folder}/{file}"
                found = Path(path).stat()
                said.update(f"{path}\0{found.st_ino} {found.st_size} {found.st_mtime_ns}\n".encode())
    return said.hexdigest()


def _identity(manifest: Path) -> list[int] | None:
    """None for what is no regular file, or is not there."""
    try:
        found = manifest.stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
