"""Brings the index in line with the files: changes of dead instances (P8), and files that were
created, edited or removed manually (P12)."""

import os
import stat

from agentbox.adapters.pods.local import index
from agentbox.adapters.pods.local.bodies import digest_of, etag_of
from agentbox.adapters.pods.local.index import DEFAULT_TYPE, Intent, ObjectRow
from agentbox.adapters.pods.local.locks import PathLocks
from agentbox.adapters.pods.local.tree import ObjectTree, open_file, stat_entry
from agentbox.adapters.pods.paths import PodPath, parse_path
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import NotFound
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database


class IndexReconciler:
    """Of one open store. Every method blocks and may raise OSError."""

    def __init__(
        self, tree: ObjectTree, db: Database, locks: PathLocks, damaged: DamagedRows
    ) -> None:
        self._tree, self._db, self._locks, self._damaged = tree, db, locks, damaged
        self._index_checked = False  # for objects whose path is not valid

    def recover_all(self) -> None:
        """Complete or roll back all changes of dead instances."""
        for intent in self._db.read_blocking(lambda db: index.list_intents(db, self._damaged)):
            with self._locks.hold(intent.path):
                self.recover(intent.path)

    def recover(self, path: str) -> None:
        """Complete or roll back changes of dead instances. The caller holds the path lock."""
        for intent in self._db.read_blocking(
            lambda db: index.list_intents(db, self._damaged, path)
        ):
            if not self._locks.is_alive(intent.instance):
                self._recover_intent(intent)

    def current_row(self, dir_fd: int, path: PodPath) -> ObjectRow | None:
        """Return the object's row, updated from the file. The caller holds the path lock. Raises
        ValidationError for a container."""
        row = self._db.read_blocking(lambda db: index.find(db, path.text))
        status = stat_entry(dir_fd, path.name, path.text)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise invalid_value("/path", "is a container")
        if status is None:
            if row is not None:
                self._db.write_blocking(lambda db: index.remove(db, path.text))
            return None
        if row is not None and row.matches(status):
            return row
        if row is None and not self._index_checked:
            self._index_checked = True
            self._db.read_blocking(lambda db: index.note_damaged(db, self._damaged))
        return self._index_file(dir_fd, path, row.content_type if row else DEFAULT_TYPE)

    def _index_file(self, dir_fd: int, path: PodPath, content_type: str) -> ObjectRow:
        descriptor, status = open_file(dir_fd, path.name, path.text)
        try:
            row = ObjectRow.from_stat(
                path.text, content_type, etag_of(digest_of(descriptor), content_type), status
            )
        finally:
            os.close(descriptor)
        self._db.write_blocking(lambda db: index.put(db, row))
        return row

    def _recover_intent(self, intent: Intent) -> None:
        path = parse_path(intent.path)
        try:
            with self._tree.open_directory(path.parts[:-1], path.text) as dir_fd:
                has_temporary = stat_entry(dir_fd, intent.temp, path.text) is not None
                if has_temporary:
                    os.unlink(intent.temp, dir_fd=dir_fd)
                    os.fsync(dir_fd)
                if intent.op == "write" and intent.etag:
                    # The temporary file may be the body that was replaced.
                    self._recover_file(dir_fd, path, intent)
                elif not has_temporary:
                    self.current_row(dir_fd, path)
        except NotFound:
            self._db.write_blocking(lambda db: index.remove(db, path.text))
        self._db.write_blocking(lambda db: index.end_intent(db, intent.id))

    def _recover_file(self, dir_fd: int, path: PodPath, intent: Intent) -> None:
        """Index the file if the intent wrote it; otherwise keep its previous type."""
        row, status = (
            self._db.read_blocking(lambda db: index.find(db, path.text)),
            stat_entry(dir_fd, path.name, path.text),
        )
        if status is None or (row is not None and row.matches(status)):
            return
        previous_type = row.content_type if row else DEFAULT_TYPE
        if self._index_file(dir_fd, path, intent.content_type).etag != intent.etag:
            self._index_file(dir_fd, path, previous_type)
