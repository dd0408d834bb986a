"""The objects of the pods: each body is compared with its tag, and the index gets the inode and
the times of the new file.
"""

import os
from pathlib import Path
from typing import Final

import apsw

from agentbox.adapters.pods.local.bodies import digest_of, etag_of
from agentbox.core.paths import Paths
from agentbox.restoring.errors import damaged
from agentbox.restoring.stores import opened

STORE: Final = "pods/index.db"
_BATCH: Final = 1000  # rows of one transaction
_UPDATE: Final = "UPDATE objects SET inode = ?, mtime_ns = ?, ctime_ns = ? WHERE path = ?"


def check_and_index(snapshot: str, paths: Paths) -> int:
    """Returns the number of objects. Raises AgentboxError (exit 1) that names an object that is
    missing or differs from its tag.
    """
    if not (paths.state / STORE).is_file():
        return 0
    root, count = paths.slot("pods") / "objects", 0
    root.mkdir(mode=0o700, exist_ok=True)
    with opened(paths, STORE) as connection:
        after = ""
        while rows := _page(connection, after):
            updates = []
            for path, content_type, etag, size in rows:
                status = _checked(snapshot, root, path, content_type, etag, size)
                updates.append((status.st_ino, status.st_mtime_ns, status.st_ctime_ns, path))
            with connection:
                connection.executemany(_UPDATE, updates)
            count, after = count + len(rows), rows[-1][0]
    return count


def _page(connection: apsw.Connection, after: str) -> list[tuple[str, str, str, int]]:
    query = "SELECT path, content_type, etag, size FROM objects WHERE path > ? ORDER BY path"
    rows = connection.execute(f"{query} LIMIT {_BATCH}", (after,)).fetchall()
    return [(str(row[0]), str(row[1]), str(row[2]), int(str(row[3]))) for row in rows]


def _checked(
    snapshot: str, root: Path, path: str, content_type: str, etag: str, size: int
) -> os.stat_result:
    name = f"state/pods/objects/{path}"
    try:
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise damaged(snapshot, name, "is in the index, but not in the snapshot") from error
    try:
        status = os.fstat(descriptor)
        if status.st_size != size or etag_of(digest_of(descriptor), content_type) != etag:
            raise damaged(snapshot, name, "differs from its tag in the index")
        return status
    finally:
        os.close(descriptor)
