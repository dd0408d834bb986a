"""What a backup takes of the pods: the index of one moment, and the body of each of its rows."""

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import apsw

from agentbox.adapters.pods.local import index
from agentbox.adapters.pods.local.bodies import digest_of, etag_of
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
        """The staged index says of each staged body what it is: one that was edited by hand gets
        its own tag, one that is gone is no object of the snapshot. Both are in `changed`.
        """
        part = super().stage(target, stop)
        objects = target / "state" / _FOLDER / "objects"
        objects.mkdir(mode=0o700, parents=True, exist_ok=True)
        changed: list[ObjectRow] = []
        try:
            for values in self.snapshot.each("SELECT * FROM objects"):
                stop()
                row = ObjectRow(*values)
                path = parse_path(row.path)
                if not self._stage_body(row, path, objects.joinpath(*path.parts)):
                    changed.append(row)
            count = part.count
            if changed:
                count = _correct_index(target / "state" / self._name, objects, changed, stop)
        except apsw.Error as error:
            raise self._error(error) from error
        self._stage_containers(objects, stop)
        names = tuple(f"{_FOLDER}/{row.path}" for row in changed)
        return StagedPart(stores=part.stores, count=count, changed=names)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._holding.close()

    def _stage_containers(self, objects: Path, stop: Stop) -> None:
        """Containers are folders without a row: those that are there now, empty ones too, with the
        times of their last change. Where an object was at the cut, that object stays.
        """
        root = self._store.tree.root
        made: list[tuple[Path, int]] = []
        for folder, names, _ in os.walk(root):
            stop()
            below = objects / Path(folder).relative_to(root)
            with suppress(FileNotFoundError):  # it was removed meanwhile
                made.append((below, Path(folder).stat().st_mtime_ns))
            for name in names:
                if not Path(folder, name).is_symlink():
                    with suppress(FileExistsError, NotADirectoryError):
                        (below / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, mtime_ns in made:
            if path.is_dir():
                os.utime(path, ns=(mtime_ns, mtime_ns))

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
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copied = copy_open_file(descriptor, target)
            return exact and copied == row.size and _is_body(row, os.fstat(descriptor))
        finally:
            os.close(descriptor)

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
        except (NotFound, PermissionDenied, PermissionError):
            return None


def _is_body(row: ObjectRow, status: os.stat_result) -> bool:
    """A move changes the time of the entry, which `ObjectRow.matches` compares too."""
    return (row.inode, row.size, row.mtime_ns) == (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
    )


def _correct_index(
    store: Path, objects: Path, changed: Sequence[ObjectRow], stop: Stop
) -> int | None:
    """Makes rows of a staged index those of the staged bodies; returns the number of objects."""
    with closing(apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        with connection:
            for row in changed:
                stop()
                new = _row_of(objects / row.path, row)
                if new is None:
                    index.remove(connection, row.path)
                else:
                    index.put(connection, new)
        return index.count_objects(connection)


def _row_of(body: Path, row: ObjectRow) -> ObjectRow | None:
    """None without a body."""
    try:
        descriptor = os.open(body, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        etag = etag_of(digest_of(descriptor), row.content_type)
        return ObjectRow.from_stat(row.path, row.content_type, etag, status)
    finally:
        os.close(descriptor)
