"""The program `backup`: makes a snapshot of what was staged, verifies it, removes what is not to be
kept, and ends; or it verifies a repository of restic. It is started when a request is there,
confined to the folder of snapshots and, with restic, to the ports of its host.
"""

import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from agentbox.backup.engines import open_repository
from agentbox.backup.errors import DAMAGED, BackupError
from agentbox.backup.repository import Repository
from agentbox.backup.restic.settings import read_settings, secret_of_box
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
    answer = verify if request.get("do") == "verify" else make
    replace_json(paths.backup_result, answer(paths, request))
    return 0


def verify(paths: Paths, request: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a request: `id`, `snapshot` ("": the whole repository), and as for `make`;
    `faults` are of what is damaged.
    """
    result: dict[str, Any] = {"id": str(request["id"]), "ok": False}
    try:
        repository, snapshot = _repository(paths, request), str(request["snapshot"])
        faults = repository.verify(snapshot) if snapshot else repository.verify_all()
    except AgentboxError as error:
        return result | _why(error)
    return result | {"ok": True, "faults": [str(fault) for fault in faults]}


def make(paths: Paths, request: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a request: `id`, `recipients` (null: not encrypted), `min_free`, `rate`, `keep`
    (four numbers), `box`, and `restic`: null, or where the repository is and names of secrets.
    Nothing of a failed backup stays, or the next one removes it; earlier ones are unchanged.
    """
    started, id = time.monotonic(), str(request["id"])
    result: dict[str, Any] = {"id": id, "ok": False, "removed": []}
    try:
        repository = _repository(paths, request)
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
        result |= _why(error)
    result["seconds"] = round(time.monotonic() - started, 3)
    return result


def _repository(paths: Paths, request: Mapping[str, Any]) -> Repository:
    """Raises BackupError without the password of restic."""
    table = request.get("restic")
    settings = read_settings(table, partial(secret_of_box, paths)) if table else None
    return open_repository(paths.backups, request.get("recipients"), settings, str(request["box"]))


def _why(error: AgentboxError) -> dict[str, Any]:
    reason = error.reason if isinstance(error, BackupError) else "unusable"
    return {"reason": reason, "message": error.message, "hint": error.hint}
