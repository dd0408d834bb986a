"""A state as before a first boot, for `agentbox reset`, with what is kept of the stopped one."""

import asyncio
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from agentbox.adapters.events.journal.epoch import write_epoch
from agentbox.contracts.events import NewEvent
from agentbox.core.paths import Paths
from agentbox.mesh.client.instance import FILE as INSTANCE
from agentbox.restoring.errors import disk_errors
from agentbox.restoring.journal_append import append
from agentbox.restoring.members import volume_roots
from agentbox.restoring.present import take_secrets
from agentbox.restoring.restore import require_empty, sync

SECRETS: Final = "secrets"
IDENTITIES: Final = "identities"
KEPT: Final = (IDENTITIES, SECRETS)


def make_fresh(paths: Paths, box: str, present: Path, kept: Collection[str]) -> int:
    """Makes the state in the empty volumes below `paths`; `present` is the state folder of the
    present box. Its journal begins with `journal.reset`, under an origin of its own at sinks: they
    have other records under its numbers. Returns the epoch. Raises AgentboxError (exit 3).
    """
    doing = f"reset {box}"
    with disk_errors(doing):
        roots = volume_roots(paths)
        require_empty(doing, roots)
        events = paths.slot("events")
        events.mkdir(mode=0o700, parents=True, exist_ok=True)
        if SECRETS in kept:
            take_secrets(paths, present)
        if IDENTITIES in kept:
            _take_identity(paths, present)
        epoch = int(time.time())
        write_epoch(events, epoch)
        event = NewEvent(type="journal.reset", data={"kept": sorted(kept), "epoch": epoch})
        asyncio.run(append(paths, box, event))
        sync(*roots.values())
    return epoch


def _take_identity(paths: Paths, present: Path) -> None:
    source = present / "mesh" / INSTANCE
    if source.is_file() and not source.is_symlink():
        paths.slot("mesh").mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(source, paths.slot("mesh") / INSTANCE)
