"""The end of a journal: commits batches to the active segment, seals it and starts the next one."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from agentbox.adapters.events.journal.active_file import ActiveFile
from agentbox.adapters.events.journal.batch import Batch
from agentbox.adapters.events.journal.chain import UnchainedRecord
from agentbox.adapters.events.journal.foreign_records import SAVE_INTERVAL, save_origin_heads
from agentbox.adapters.events.journal.recovery import JournalState
from agentbox.adapters.events.journal.segments import (
    CHECKPOINT_INTERVAL,
    SEALED,
    JournalSegment,
    add_checkpoint,
    day_of,
    next_segment_name,
    sync_directory,
    write_seal,
)


class SegmentAppender:
    """Owns the active segment and the end of the chain. `on_committed` is called after each commit,
    also after that of a sealing record; without `sync_each` a commit is not synced. For one
    thread."""

    def __init__(
        self,
        journal: JournalState,
        create_self_draft: Callable[[str, dict[str, Any]], UnchainedRecord],
        on_committed: Callable[[Batch], None],
        *,
        sync_each: bool,
    ) -> None:
        self._journal, self._create_self_draft = journal, create_self_draft
        self._on_committed, self._sync_each = on_committed, sync_each
        self.file = ActiveFile()
        self.durable = journal.head  # the newest record that is synced to disk
        self._sealing: JournalSegment | None = None  # has its sealing record, but no seal file yet
        self._heads_saved_at = journal.head[0]  # the record up to which `origins.json` is complete

    def open(self) -> None:
        """Open the active segment, if any. Raises OSError."""
        if self._journal.active is not None:
            self.file.open(self._journal.active.path)

    def close(self) -> None:
        self._save_origin_heads()
        self.file.close()

    def new_batch(self) -> Batch:
        """Return an empty batch that continues the chain."""
        seq, last = self._journal.head
        return Batch(seq, last, self._journal.last_ts)

    def commit(self, batch: Batch) -> None:
        """Write and sync, then advance the end of the chain. On OSError the end is unchanged."""
        segment = self._journal.active
        if not batch.lines or segment is None:
            return
        offset_before = self.file.size
        self.file.write(b"".join(batch.lines))
        if self._sync_each:
            self.file.sync()
            self.durable = batch.seq, batch.hash
        self._journal.size += batch.size
        self._journal.last_ts = batch.ts
        for seq, offset in batch.starts:
            if (seq - segment.first_seq) % CHECKPOINT_INTERVAL == 0:
                add_checkpoint(segment, seq, offset_before + offset)
        self._journal.head = batch.seq, batch.hash
        self._journal.origin_heads.update(batch.origin_heads)
        if batch.seq - self._heads_saved_at >= SAVE_INTERVAL:
            self._save_origin_heads()
        self._on_committed(batch)

    def roll(self, moment: datetime) -> None:
        """Seal the active segment, if any, and start the next one. Raises OSError."""
        previous = self._journal.active
        if previous is not None and self.file.size:
            self._seal(previous)
        self.file.close()
        if previous is not None and not previous.seal.exists():  # it has no record
            self._journal.segments.remove(previous)
            previous.path.unlink()
        self._journal.active = None
        last = self._journal.segments[-1].path if self._journal.segments else None
        seq, prev = self._journal.head
        new = JournalSegment(
            self._journal.directory / next_segment_name(day_of(moment), last), seq + 1, prev
        )
        self.file.open(new.path)
        sync_directory(self._journal.directory)
        self._journal.segments.append(new)
        self._journal.active = new

    def sync(self) -> None:
        """Sync all commits. Raises OSError."""
        self.file.sync()
        self.durable = self._journal.head

    def _seal(self, segment: JournalSegment) -> None:
        """The sealing record has the time of the previous one, so its day is the segment's."""
        if self._sealing is not segment:
            seq, tail = self._journal.head
            batch = self.new_batch()
            data = {
                "first_seq": segment.first_seq,
                "count": seq - segment.first_seq + 1,
                "tail_hash": tail,
            }
            batch.append(self._create_self_draft(SEALED, data))
            self.commit(batch)
            self._sealing = segment
        if self.file.dirty:
            self.sync()
        self._save_origin_heads()
        write_seal(segment, *self._journal.head)

    def _save_origin_heads(self) -> None:
        """Opening derives the rest from the newest records, so a failure is ignored."""
        if self._journal.origin_heads and self._heads_saved_at < self._journal.head[0]:
            with suppress(OSError):
                save_origin_heads(self._journal.directory, self._journal.origin_heads)
                self._heads_saved_at = self._journal.head[0]
