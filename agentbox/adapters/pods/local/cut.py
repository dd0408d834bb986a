"""What a backup takes of the pods: the index of one moment, and the body of each of its rows."""

import os
from contextlib import ExitStack
from pathlib import Path

import apsw

from agentbox.adapters.pods.local.index import ObjectRow
from agentbox.adapters.pods.local.store import ObjectStore
from agentbox.adapters.pods.local.tree import open_file
from agentbox.adapters.pods.paths import PodPath, parse_path
from agentbox.adapters.runtime.cut import SqliteCut, StagedPart, Stop
from agentbox.core.files.copying import copy_open_file
from agentbox.core.slot_errors import NotFound, PermissionDenied

_FOLDER = "pods"


class PodsCut(SqliteCut):
    """Bodies are held from `prepare` to `close`."""

    def __init__(self, index: Path, store: ObjectStore, impl: str) -> None:
        super().__init__(
            index, f"{_FOLDER}/{index.name}", "SELECT objects FROM totals", "pods", impl
        )
        self._store = store
        self._holding = ExitStack()

    def prepare(self) -> None:
        self._holding.enter_context(self._store.held.holding())
        super().prepare()

    def size(self) -> int:
        return super().size() + int(self.snapshot.rows("SELECT bytes FROM totals")[0][0])

    def stage(self, target: Path, stop: Stop) -> StagedPart:
        part = super().stage(target, stop)
        objects = target / "state" / _FOLDER / "objects"
        objects.mkdir(mode=0o700, parents=True, exist_ok=True)
        changed: list[str] = []
        folder: Path | None = None
        try:
            for values in self.snapshot.each("SELECT * FROM objects"):
                stop()
                row = ObjectRow(*values)
                path = parse_path(row.path)
                if folder != (folder := objects.joinpath(*path.parts[:-1])):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not self._stage_body(row, path, folder / path.name):
                    changed.append(f"{_FOLDER}/{row.path}")
        except apsw.Error as error:
            raise self._error(error) from error
        self._stage_containers(objects, stop)
        return StagedPart(stores=part.stores, count=part.count, changed=tuple(changed))

    def close(self) -> None:
        super().close()
        self._holding.close()

    def _stage_containers(self, objects: Path, stop: Stop) -> None:
        """Containers are folders without a row: those that are there now, empty ones too."""
        root = self._store.tree.root
        for folder, names, _ in os.walk(root):
            stop()
            below = objects / Path(folder).relative_to(root)
            for name in names:
                if not Path(folder, name).is_symlink():
                    (below / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _stage_body(self, row: ObjectRow, path: PodPath, target: Path) -> bool:
        """Returns whether the body is that of the row. A file that was edited by hand is copied as
        it is.
        """
        descriptor = self._find_body(row, path)
        if descriptor is None:
            with self._store.locks.hold(row.path):  # it is being replaced
                descriptor = self._find_body(row, path)
        exact = descriptor is not None
        if descriptor is None and (descriptor := self._open_current(path)) is None:
            return False
        try:
            copy_open_file(descriptor, target)
        finally:
            os.close(descriptor)
        return exact

    def _find_body(self, row: ObjectRow, path: PodPath) -> int | None:
        current = self._open_current(path)
        if current is not None:
            if _is_body(row, os.fstat(current)):
                return current
            os.close(current)
        held = self._store.held.open(row.inode)
        if held is not None and not _is_body(row, os.fstat(held)):
            os.close(held)
            return None
        return held

    def _open_current(self, path: PodPath) -> int | None:
        try:
            with self._store.tree.open_directory(path.parts[:-1], path.text) as dir_fd:
                return open_file(dir_fd, path.name, path.text)[0]
        except (NotFound, PermissionDenied):
            return None


def _is_body(row: ObjectRow, status: os.stat_result) -> bool:
    """A move changes the time of the entry, which `ObjectRow.matches` compares too."""
    return (row.inode, row.size, row.mtime_ns) == (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
    )
