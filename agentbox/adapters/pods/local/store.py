"""The local store, one blocking call at a time: it holds a path's lock, records an intent, and moves bytes and index.

Order of a write (P8): intent, temporary file beside the object, fsync, rename, fsync of the folder, index and end of the
intent in one commit. Whoever next holds the lock of that path finishes or undoes what a dead instance began.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import apsw

from agentbox.adapters.pods.conditions import Conditions
from agentbox.adapters.pods.local import index
from agentbox.adapters.pods.local.bodies import Incoming, check_cap, digest_of, etag_of, read_all
from agentbox.adapters.pods.local.index import DEFAULT_TYPE, Intent, Quota, Row
from agentbox.adapters.pods.local.locks import Locks
from agentbox.adapters.pods.local.tree import Tree, look, missing, open_file, typed
from agentbox.adapters.pods.paths import PodPath, parse
from agentbox.core.ids import uuid7
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import ContainerNotEmpty, NotFound
from agentbox.core.storage.damaged_rows import DamagedRows
from agentbox.core.storage.sqlite import Database

TEMPORARY = ".agentbox-"


@dataclass(frozen=True, slots=True)
class Found:
    """An object as it is now, and whether the call made it."""

    row: Row
    stat: os.stat_result
    created: bool = False


class Store:
    """An open store. Every method blocks, and raises AdapterError alone."""

    def __init__(
        self, folder: Path, db: Database, quota: Quota, cap: int, lost: Callable[[], None], damaged: DamagedRows
    ) -> None:
        """`lost` is called when there are objects in the index and none in the folder, before anything is made."""
        self._db, self._quota, self.cap, self.damaged = db, quota, cap, damaged
        self._index_checked = False  # for objects that it knows by no valid path
        root = folder / "objects"
        if db.read_here(index.count) and not (root.is_dir() and any(root.iterdir())):
            lost()
            db.write_here(index.clear)
        root.mkdir(mode=0o700, exist_ok=True)
        self.tree = Tree(root)
        self._locks = Locks(folder / "locks")
        for intent in db.read_here(lambda db: index.intents(db, damaged)):
            with self._locks.hold(intent.path):
                self._settle(intent.path)

    def close(self) -> None:
        self.tree.close()
        self._locks.close()

    def open_object(self, path: PodPath) -> tuple[int, Found]:
        """A descriptor of the object as it is, and what is known of it. Raises NotFound, PermissionDenied."""
        with typed(f"read {path.text}"), self.tree.folder(path.parts[:-1], path.text) as folder:
            descriptor, found = open_file(folder, path.name, path.text)
            row = self._db.read_here(lambda db: index.find(db, path.text))
            if row is not None and row.same(found):
                return descriptor, Found(row, found)
            os.close(descriptor)
            with self._locks.hold(path.text):  # a write is between its rename and its commit, or somebody edited it
                self._settle(path.text)
                row = self._current(folder, path)
                if row is None:
                    raise missing(path.text)
                descriptor, found = open_file(folder, path.name, path.text)
                return descriptor, Found(row, found)

    def head(self, path: PodPath) -> Found:
        """As `open_object`, without the body."""
        descriptor, found = self.open_object(path)
        os.close(descriptor)
        return found

    def container(self, path: PodPath) -> os.stat_result:
        """What a container is. Raises NotFound."""
        with typed(f"read {path.text}"), self.tree.folder(path.parts, path.text) as folder:
            return os.fstat(folder)

    def write(self, path: PodPath, body: bytes, content_type: str, wanted: Conditions) -> Found:
        """Puts a whole body there."""
        check_cap(len(body), self.cap)
        return self._put(path, wanted, lambda _current, _folder: (body, content_type))

    def patch(self, path: PodPath, change: Callable[[bytes, str], bytes], wanted: Conditions) -> Found:
        """Reads, changes and writes the object, with nobody between."""

        def patched(current: Row | None, folder: int) -> tuple[bytes, str]:
            if current is None:
                raise missing(path.text)
            descriptor, _ = open_file(folder, path.name, path.text)
            try:
                body = change(read_all(descriptor), current.content_type)
            finally:
                os.close(descriptor)
            check_cap(len(body), self.cap)
            return body, current.content_type

        return self._put(path, wanted, patched)

    def delete(self, path: PodPath, wanted: Conditions) -> None:
        """Removes an object, or an empty container."""
        with typed(f"delete {path.text}"), self.tree.folder(path.parts[:-1], path.text) as folder:
            if path.is_container:
                _remove_container(folder, path)
                return
            with self._locks.hold(path.text):
                self._settle(path.text)
                current = self._current(folder, path)
                if current is None:
                    raise missing(path.text)
                wanted.check(path.text, current.etag)
                intent = self._intent("delete", path, current.content_type)
                with self._under_way(intent):
                    os.unlink(path.name, dir_fd=folder)
                    os.fsync(folder)
                    self._db.write_here(lambda db: _removed(db, intent))

    @contextmanager
    def receiving(self, path: PodPath, content_type: str) -> Iterator["Receiving"]:
        """A body that comes in pieces: `fill` what it gives, then `place`."""
        intent = self._intent("write", path, content_type)
        with (
            typed(f"write {path.text}"),
            self.tree.folder(path.parts[:-1], path.text, make=True) as folder,
            self._under_way(intent),
            Incoming(folder, intent.temp, self.cap) as incoming,
        ):
            yield Receiving(self, path, folder, incoming, intent)

    def placed(self, one: "Receiving", wanted: Conditions) -> Found:
        """The end of such a write: what was demanded is checked now that all is here."""
        digest = one.incoming.synced()
        with self._locks.hold(one.path.text):
            self._settle(one.path.text)
            current = self._current(one.folder, one.path)
            wanted.check(one.path.text, current.etag if current else None)
            intent = one.intent.with_body(digest, one.incoming.size, current)
            self._db.write_here(lambda db: index.begin(db, intent, self._quota))
            return self._place(one.incoming, intent, one.path, new=current is None)

    def _put(self, path: PodPath, wanted: Conditions, make: Callable[[Row | None, int], tuple[bytes, str]]) -> Found:
        with (
            typed(f"write {path.text}"),
            self.tree.folder(path.parts[:-1], path.text, make=True) as folder,
            self._locks.hold(path.text),
        ):
            self._settle(path.text)
            current = self._current(folder, path)
            wanted.check(path.text, current.etag if current else None)
            body, content_type = make(current, folder)
            plan = self._intent("write", path, content_type)
            intent = plan.with_body(hashlib.sha256(body).digest(), len(body), current)
            with self._under_way(intent), Incoming(folder, intent.temp, self.cap) as incoming:
                incoming.fill(body)
                incoming.synced()
                return self._place(incoming, intent, path, new=current is None)

    def _place(self, incoming: Incoming, intent: Intent, path: PodPath, *, new: bool) -> Found:
        found = incoming.place(path.name)
        row = Row.of(path.text, intent.content_type, intent.etag, found)
        self._db.write_here(lambda db: _arrived(db, row, intent))
        return Found(row, found, new)

    def _intent(self, op: Literal["write", "delete"], path: PodPath, content_type: str) -> Intent:
        name = str(uuid7())
        return Intent(name, self._locks.instance, path.text, op, f"{TEMPORARY}{name}", content_type)

    @contextmanager
    def _under_way(self, intent: Intent) -> Iterator[None]:
        self._db.write_here(lambda db: index.begin(db, intent, self._quota))
        try:
            yield
        except BaseException:
            self._db.write_here(lambda db: index.end(db, intent.id))
            raise

    def _current(self, folder: int, path: PodPath) -> Row | None:
        """The row of what is there, brought up to date with the file; the caller holds the lock."""
        row = self._db.read_here(lambda db: index.find(db, path.text))
        found = look(folder, path.name, path.text)
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise refuse("/path", "is a container")
        if found is None:
            if row is not None:
                self._db.write_here(lambda db: index.drop(db, path.text))
            return None
        if row is not None and row.same(found):
            return row
        if row is None and not self._index_checked:
            self._index_checked = True
            self._db.read_here(lambda db: index.note_damaged(db, self.damaged))
        return self._adopt(folder, path, row.content_type if row else DEFAULT_TYPE)

    def _adopt(self, folder: int, path: PodPath, content_type: str) -> Row:
        """Indexes a file that was put there, or edited, by hand (P12)."""
        descriptor, found = open_file(folder, path.name, path.text)
        try:
            row = Row.of(path.text, content_type, etag_of(digest_of(descriptor), content_type), found)
        finally:
            os.close(descriptor)
        self._db.write_here(lambda db: index.put(db, row))
        return row

    def _settle(self, path: str) -> None:
        """Finishes or undoes what dead instances began at that path; the caller holds its lock."""
        for intent in self._db.read_here(lambda db: index.intents(db, self.damaged, path)):
            if not self._locks.is_alive(intent.instance):
                self._settle_one(intent)

    def _settle_one(self, intent: Intent) -> None:
        path = parse(intent.path)
        try:
            with self.tree.folder(path.parts[:-1], path.text) as folder:
                if look(folder, intent.temp, path.text) is not None:
                    os.unlink(intent.temp, dir_fd=folder)
                    os.fsync(folder)
                elif intent.op == "write" and intent.etag:
                    self._settle_file(folder, path, intent)
                else:
                    self._current(folder, path)
        except NotFound:
            self._db.write_here(lambda db: index.drop(db, path.text))
        self._db.write_here(lambda db: index.end(db, intent.id))

    def _settle_file(self, folder: int, path: PodPath, intent: Intent) -> None:
        """Indexes the file if it is the one that the intent placed; any other is as it was before."""
        row, found = self._db.read_here(lambda db: index.find(db, path.text)), look(folder, path.name, path.text)
        if found is None or (row is not None and row.same(found)):
            return
        was = row.content_type if row else DEFAULT_TYPE
        if self._adopt(folder, path, intent.content_type).etag != intent.etag:
            self._adopt(folder, path, was)


@dataclass(frozen=True, slots=True)
class Receiving:
    """A body under way."""

    store: Store
    path: PodPath
    folder: int
    incoming: Incoming
    intent: Intent

    def fill(self, piece: bytes) -> None:
        with typed(f"write {self.path.text}"):
            self.incoming.fill(piece)

    def place(self, wanted: Conditions) -> Found:
        with typed(f"write {self.path.text}"):
            return self.store.placed(self, wanted)


def _arrived(db: apsw.Connection, row: Row, intent: Intent) -> None:
    index.put(db, row)
    index.end(db, intent.id)


def _removed(db: apsw.Connection, intent: Intent) -> None:
    index.drop(db, intent.path)
    index.end(db, intent.id)


def _remove_container(folder: int, path: PodPath) -> None:
    found = look(folder, path.name, path.text)
    if found is None or not stat.S_ISDIR(found.st_mode):
        raise missing(path.text)
    try:
        os.rmdir(path.name, dir_fd=folder)
    except FileNotFoundError:
        raise missing(path.text) from None
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise ContainerNotEmpty(f"cannot delete {path.text}: it holds something", path=path.text) from None
    os.fsync(folder)
