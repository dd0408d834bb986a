"""What a backup takes of a journal: its segments up to one record."""

from contextlib import ExitStack
from pathlib import Path

import apsw

from agentbox.adapters.events.journal.epoch import FILE as EPOCH
from agentbox.adapters.events.journal.epoch import read_epoch
from agentbox.adapters.events.journal.foreign_records import OriginHead, save_origin_heads
from agentbox.adapters.events.journal.open_journal import OpenJournal
from agentbox.adapters.events.journal.segments import (
    ANCHOR,
    JournalSegment,
    find_segment,
    open_at,
)
from agentbox.adapters.runtime.cut import StagedPart, Stop
from agentbox.core.files.copying import copy_file, copy_open_file
from agentbox.core.storage.sqlite_errors import to_adapter_error
from agentbox.core.storage.sqlite_snapshot import StoreSnapshot

_FOLDER = "events"


class JournalCut:
    """`last_seq` is that of the record of the cut, set before `begin`. Segments are not removed
    from `prepare` to `close`. `bytes` is the length of what was staged. With a sink the store of
    what was delivered is a part of it. So is the last record of each box that delivers here: an
    opening reads the newest records only.
    """

    def __init__(self, journal: OpenJournal, directory: Path, impl: str) -> None:
        self.last_seq = -1
        self.epoch = self.bytes = 0
        self._journal, self._directory, self._impl = journal, directory, impl
        self._delivery: StoreSnapshot | None = None
        self._reading = ExitStack()
        self._segments: tuple[JournalSegment, ...] = ()
        self._origin_heads: dict[str, OriginHead] = {}

    def prepare(self) -> None:
        self._reading.enter_context(self._journal.writer.readers.reading())
        self.epoch = read_epoch(self._directory)
        path = self._directory / "delivery.db"
        if path.exists():
            try:
                self._delivery = StoreSnapshot(path)
            except apsw.Error as error:
                raise to_adapter_error(error, path.name, "events", self._impl) from error

    def begin(self, seconds: float) -> None:
        if self._delivery is not None:
            self._delivery.begin(seconds)
        self._segments = tuple(self._journal.journal.segments)
        self._origin_heads = dict(self._journal.journal.origin_heads)

    def size(self) -> int:
        delivery = 0 if self._delivery is None else self._delivery.size
        return self._journal.journal.size + delivery

    def stage(self, target: Path, stop: Stop) -> StagedPart:
        folder = target / "state" / _FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (ANCHOR, EPOCH):
            copy_file(self._directory / name, folder / name)
        if self._origin_heads:
            save_origin_heads(folder, self._origin_heads)
        last = find_segment(list(self._segments), self.last_seq)
        for segment in self._segments:
            stop()
            if segment is last:
                with open_at(segment, self.last_seq) as stream:
                    stream.readline()
                    length = stream.tell()
                    copy_open_file(stream.fileno(), folder / segment.path.name, length)
                (folder / segment.path.name).chmod(0o600)  # it goes on after a restore
                self.bytes += length
                break
            self.bytes += copy_file(segment.path, folder / segment.path.name) or 0
            copy_file(segment.seal, folder / segment.seal.name)
        stores = {}
        if self._delivery is not None:
            path = f"state/{_FOLDER}/delivery.db"
            try:
                self._delivery.copy_to(target / path)
                stores[path] = self._delivery.migration
            except apsw.Error as error:
                raise to_adapter_error(error, "delivery.db", "events", self._impl) from error
        count = self.last_seq + 1 - self._journal.journal.first_seq
        return StagedPart(stores=stores, count=count)

    def close(self) -> None:
        delivery, self._delivery = self._delivery, None
        try:
            if delivery is not None:
                delivery.close()
        finally:
            self._reading.close()
