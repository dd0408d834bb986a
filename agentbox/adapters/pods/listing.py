"""The direct members of a container, in the byte order of their names."""

import os
import stat

from agentbox.adapters.pods.local.store import Found, Store
from agentbox.adapters.pods.local.tree import plain, typed
from agentbox.adapters.pods.paths import PodPath, listed
from agentbox.core.slot_errors import NotFound, PermissionDenied

Member = tuple[PodPath, Found | os.stat_result]


def members(store: Store, container: PodPath, after: str | None, limit: int) -> list[Member]:
    """Up to `limit` members whose name comes after `after`. What is no plain file or folder is left out (P10)."""
    found: list[Member] = []
    with typed(f"list {container.text}"), store.tree.folder(container.parts, container.text) as folder:
        with os.scandir(folder) as entries:
            names = listed([entry.name for entry in entries])
        for name in names:
            if after is not None and name.encode() <= after.encode():
                continue
            member = _member(store, folder, container, name)
            if member is not None:
                found.append(member)
            if len(found) == limit:
                break
    return found


def _member(store: Store, folder: int, container: PodPath, name: str) -> Member | None:
    try:
        seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
        parts = (*container.parts, name)
        if stat.S_ISDIR(seen.st_mode):
            return PodPath(f"{container.text}{name}/", parts, True), seen
        if not plain(seen):
            return None
        path = PodPath(f"{container.text}{name}", parts, False)
        found = store.damaged.readable([path], store.head)
        return (path, found[0]) if found else None
    except (FileNotFoundError, NotFound, PermissionDenied):
        return None  # it went, or turned into something else, while we looked
