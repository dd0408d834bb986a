"""The local store with blocking calls: locks a path, records an intent, moves bytes and updates the
index.

Order of a write (P8): intent, temporary file beside the object, fsync, rename, fsync of the
directory, then index and end of the intent in one commit. The next holder of the path's lock
completes or rolls back the changes of a dead instance (`reconciler`).
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import apsw

from agentbox.adapters.pods.local import index
from agentbox.adapters.pods.local.bodies import Upload, check_cap, read_all
from agentbox.adapters.pods.local.held import HeldBodies
from agentbox.adapters.pods.local.index import Intent, ObjectRow, Quota
from agentbox.adapters.pods.local.locks import PathLocks
from agentbox.adapters.pods.local.reconciler import IndexReconciler
from agentbox.adapters.pods.local.tree import (
    ObjectTree,
    not_found,
    open_file,
    remove_directory,
    translate_errors,
)
from agentbox.adapters.pods.object_preconditions import ObjectPreconditions
from agentbox.adapters.pods.paths import PodPath
from agentbox.core.ids import uuid7
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database

TEMPORARY_PREFIX = ".agentbox-"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it is now, and whether the call created it."""

    row: ObjectRow
    stat: os.stat_result
    created: bool = False


class ObjectStore:
    """An open store. Every method blocks and raises AdapterError only."""

    def __init__(
        self,
        directory: Path,
        db: Database,
        quota: Quota,
        cap: int,
        check_loss: Callable[[], None],
        damaged: DamagedRows,
    ) -> None:
        """`check_loss` is called if the index has objects and the directory has none, before
        anything is created."""
        self._db, self._quota, self.cap, self.damaged = db, quota, cap, damaged
        root = directory / "objects"
        if db.read_blocking(index.count_objects) and not (root.is_dir() and any(root.iterdir())):
            check_loss()
            db.write_blocking(index.clear)
        root.mkdir(mode=0o700, exist_ok=True)
        self.tree = ObjectTree(root)
        self.held = HeldBodies(directory / "held")
        self.locks = PathLocks(directory / "locks")
        self._reconciler = IndexReconciler(self.tree, db, self.locks, damaged)
        self._reconciler.recover_all()

    def close(self) -> None:
        self.tree.close()
        self.held.close()
        self.locks.close()

    def open_object(self, path: PodPath) -> tuple[int, StoredObject]:
        """Return a descriptor and the index entry. Raises NotFound, PermissionDenied."""
        with (
            translate_errors(f"read {path.text}"),
            self.tree.open_directory(path.parts[:-1], path.text) as dir_fd,
        ):
            descriptor, status = open_file(dir_fd, path.name, path.text)
            row = self._db.read_blocking(lambda db: index.find(db, path.text))
            if row is not None and row.matches(status):
                return descriptor, StoredObject(row, status)
            os.close(descriptor)
            # a write is between rename and commit, or the file was edited
            with self.locks.hold(path.text):
                self._reconciler.recover(path.text)
                row = self._reconciler.current_row(dir_fd, path)
                if row is None:
                    raise not_found(path.text)
                descriptor, status = open_file(dir_fd, path.name, path.text)
                return descriptor, StoredObject(row, status)

    def head(self, path: PodPath) -> StoredObject:
        """Like `open_object`, without the body."""
        descriptor, stored = self.open_object(path)
        os.close(descriptor)
        return stored

    def container_stat(self, path: PodPath) -> os.stat_result:
        """Return the stat of a container. Raises NotFound."""
        with (
            translate_errors(f"read {path.text}"),
            self.tree.open_directory(path.parts, path.text) as dir_fd,
        ):
            return os.fstat(dir_fd)

    def write(
        self, path: PodPath, body: bytes, content_type: str, conditions: ObjectPreconditions
    ) -> StoredObject:
        """Write a complete body."""
        check_cap(len(body), self.cap)
        return self._put(path, conditions, lambda _current, _folder: (body, content_type))

    def patch(
        self, path: PodPath, change: Callable[[bytes, str], bytes], conditions: ObjectPreconditions
    ) -> StoredObject:
        """Read, change and write the object while holding its lock."""

        def produce(current: ObjectRow | None, dir_fd: int) -> tuple[bytes, str]:
            if current is None:
                raise not_found(path.text)
            descriptor, _ = open_file(dir_fd, path.name, path.text)
            try:
                body = change(read_all(descriptor), current.content_type)
            finally:
                os.close(descriptor)
            check_cap(len(body), self.cap)
            return body, current.content_type

        return self._put(path, conditions, produce)

    def delete(self, path: PodPath, conditions: ObjectPreconditions) -> None:
        """Remove an object or an empty container."""
        with (
            translate_errors(f"delete {path.text}"),
            self.tree.open_directory(path.parts[:-1], path.text) as dir_fd,
        ):
            if path.is_container:
                remove_directory(dir_fd, path.name, path.text)
                return
            with self.locks.hold(path.text):
                self._reconciler.recover(path.text)
                current = self._reconciler.current_row(dir_fd, path)
                if current is None:
                    raise not_found(path.text)
                conditions.check(path.text, current.etag)
                intent = self._create_intent("delete", path, current.content_type)
                with self._recorded_intent(intent):
                    self._remove_body(dir_fd, path.name)
                    os.fsync(dir_fd)
                    self._db.write_blocking(lambda db: _index_removed(db, intent))

    @contextmanager
    def open_write(self, path: PodPath, content_type: str) -> Iterator["PendingWrite"]:
        """Open a streamed write: call `write` for each chunk, then `commit`."""
        intent = self._create_intent("write", path, content_type)
        with (
            translate_errors(f"write {path.text}"),
            self.tree.open_directory(path.parts[:-1], path.text, create=True) as dir_fd,
            self._recorded_intent(intent),
            Upload(dir_fd, intent.temp, self.cap) as upload,
        ):
            yield PendingWrite(self, path, dir_fd, upload, intent)

    def commit_write(
        self, pending: "PendingWrite", conditions: ObjectPreconditions
    ) -> StoredObject:
        """Complete a streamed write; the conditions are checked now."""
        digest = pending.upload.sync()
        with self.locks.hold(pending.path.text):
            self._reconciler.recover(pending.path.text)
            current = self._reconciler.current_row(pending.dir_fd, pending.path)
            conditions.check(pending.path.text, current.etag if current else None)
            intent = pending.intent.with_body(digest, pending.upload.size, current)
            self._db.write_blocking(lambda db: index.begin_intent(db, intent, self._quota))
            return self._commit_upload(pending.upload, intent, pending.path, new=current is None)

    def _put(
        self,
        path: PodPath,
        conditions: ObjectPreconditions,
        produce: Callable[[ObjectRow | None, int], tuple[bytes, str]],
    ) -> StoredObject:
        with (
            translate_errors(f"write {path.text}"),
            self.tree.open_directory(path.parts[:-1], path.text, create=True) as dir_fd,
            self.locks.hold(path.text),
        ):
            self._reconciler.recover(path.text)
            current = self._reconciler.current_row(dir_fd, path)
            conditions.check(path.text, current.etag if current else None)
            body, content_type = produce(current, dir_fd)
            plan = self._create_intent("write", path, content_type)
            intent = plan.with_body(hashlib.sha256(body).digest(), len(body), current)
            with self._recorded_intent(intent), Upload(dir_fd, intent.temp, self.cap) as upload:
                upload.write(body)
                upload.sync()
                return self._commit_upload(upload, intent, path, new=current is None)

    def _commit_upload(
        self, upload: Upload, intent: Intent, path: PodPath, *, new: bool
    ) -> StoredObject:
        status = upload.commit(path.name, self.held if self.held.active and not new else None)
        row = ObjectRow.from_stat(path.text, intent.content_type, intent.etag, status)
        self._db.write_blocking(lambda db: _index_written(db, row, intent))
        return StoredObject(row, status, new)

    def _remove_body(self, dir_fd: int, name: str) -> None:
        if self.held.active:
            self.held.take(dir_fd, name)
        else:
            os.unlink(name, dir_fd=dir_fd)

    def _create_intent(
        self, op: Literal["write", "delete"], path: PodPath, content_type: str
    ) -> Intent:
        name = str(uuid7())
        return Intent(
            name, self.locks.instance, path.text, op, f"{TEMPORARY_PREFIX}{name}", content_type
        )

    @contextmanager
    def _recorded_intent(self, intent: Intent) -> Iterator[None]:
        self._db.write_blocking(lambda db: index.begin_intent(db, intent, self._quota))
        try:
            yield
        except BaseException:
            self._db.write_blocking(lambda db: index.end_intent(db, intent.id))
            raise


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A streamed write in progress."""

    store: ObjectStore
    path: PodPath
    dir_fd: int
    upload: Upload
    intent: Intent

    def write(self, chunk: bytes) -> None:
        with translate_errors(f"write {self.path.text}"):
            self.upload.write(chunk)

    def commit(self, conditions: ObjectPreconditions) -> StoredObject:
        with translate_errors(f"write {self.path.text}"):
            return self.store.commit_write(self, conditions)


def _index_written(db: apsw.Connection, row: ObjectRow, intent: Intent) -> None:
    index.put(db, row)
    index.end_intent(db, intent.id)


def _index_removed(db: apsw.Connection, intent: Intent) -> None:
    index.remove(db, intent.path)
    index.end_intent(db, intent.id)
