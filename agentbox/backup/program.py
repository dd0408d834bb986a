"""The program `backup`: makes a snapshot of what was staged, verifies it, removes what is not to be
kept, and ends. It is started when a request is there, confined to the folder of snapshots.
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

from agentbox.backup.archive.repository import ArchiveRepository
from agentbox.backup.errors import DAMAGED, BackupError
from agentbox.backup.retention import Policy
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import Paths

NICE: Final = 10


def main() -> int:
    """0 also for a backup that failed: the result says so, and nobody starts it again."""
    os.nice(NICE)
    paths = Paths.for_this_process()
    request = read_json(paths.backup_request)
    if request is None:
        sys.stderr.write("there is no request for a backup\n")
        return 1
    paths.backup_result.unlink(missing_ok=True)
    replace_json(paths.backup_result, make(paths, request))
    return 0


def make(paths: Paths, request: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a request: `id`, `recipients` (null: not encrypted), `min_free`, `rate` and
    `keep` (four numbers). Nothing of a failed backup stays; earlier ones are unchanged.
    """
    started, id = time.monotonic(), str(request["id"])
    repository = ArchiveRepository(paths.backups, request["recipients"])
    result: dict[str, Any] = {"id": id, "ok": False, "removed": []}
    try:
        repository.clean(keep=id)
        written = repository.write(
            paths.backup_staging / id, min_free=request["min_free"], rate=request["rate"]
        )
        result |= {"head_sha256": written.head_sha256, "size": written.snapshot.size}
        if faults := repository.verify(id):
            repository.remove(id)
            return result | {"reason": DAMAGED, "message": "; ".join(map(str, faults))}
        result["ok"] = True
        result["removed"] = [
            gone.id for gone in repository.prune(Policy(*request["keep"]), verified=id)
        ]
    except AgentboxError as error:
        reason = error.reason if isinstance(error, BackupError) else "unusable"
        result |= {"reason": reason, "message": error.message, "hint": error.hint}
    result["seconds"] = round(time.monotonic() - started, 3)
    return result
