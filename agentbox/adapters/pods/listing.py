"""The direct members of a container, in byte order of their names."""

import os
import stat

from agentbox.adapters.pods.local.store import ObjectStore, StoredObject
from agentbox.adapters.pods.local.tree import is_plain_file, translate_errors
from agentbox.adapters.pods.paths import PodPath, valid_names
from agentbox.core.slot_errors import NotFound, PermissionDenied

ListedEntry = tuple[PodPath, StoredObject | os.stat_result]


def list_members(
    store: ObjectStore, container: PodPath, after: str | None, limit: int
) -> list[ListedEntry]:
    """Return up to `limit` members with names after `after`. Other than plain files and directories
    are skipped (P10)."""
    result: list[ListedEntry] = []
    with (
        translate_errors(f"list {container.text}"),
        store.tree.open_directory(container.parts, container.text) as dir_fd,
    ):
        with os.scandir(dir_fd) as entries:
            names = valid_names([entry.name for entry in entries])
        for name in names:
            if after is not None and name.encode() <= after.encode():
                continue
            member = _member(store, dir_fd, container, name)
            if member is not None:
                result.append(member)
            if len(result) == limit:
                break
    return result


def _member(store: ObjectStore, dir_fd: int, container: PodPath, name: str) -> ListedEntry | None:
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        parts = (*container.parts, name)
        if stat.S_ISDIR(status.st_mode):
            return PodPath(f"{container.text}{name}/", parts, True), status
        if not is_plain_file(status):
            return None
        path = PodPath(f"{container.text}{name}", parts, False)
        readable = store.damaged.readable_rows([path], store.head)
        return (path, readable[0]) if readable else None
    except (FileNotFoundError, NotFound, PermissionDenied):
        return None  # it was removed or replaced meanwhile
