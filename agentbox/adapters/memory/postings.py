"""In-memory postings: the entries with a word and its occurrences. A search adds arrays instead of
querying each entry.

A word's postings are read on first use and cached while there is capacity; postings of entries
written since are read on the next use. Counts cover only the entries visible to the search, so
scores reveal nothing about others. Not thread-safe.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentbox.adapters.memory.rank_fusion import MAX_WEIGHTED_WORDS

MAX_POSTINGS = 16_000_000  # cached postings of 8 bytes
WORD_OVERHEAD = 100  # overhead of a word, in postings
_MAX_LOG = 10_000  # entries that a word may lag behind before its postings are read again
_GAP = 4096  # numbers reserved for entries of open transactions
_NEVER = np.iinfo(np.int64).max

# number, namespace (None: removed), bytes, expiry
EntryRow = tuple[int, str | None, int, int | None]
ScoreGain = Callable[[int, Any, Any], Any]
"""The score that a word adds: from the number of entries with it, its occurrences, and the bytes of
each entry."""


@dataclass(slots=True)
class _WordPostings:
    """Unique positions and their counts. `log_position` is the position in the change log."""

    positions: Any  # int32
    counts: Any  # float32
    log_position: int


@dataclass(frozen=True, slots=True)
class ScoredEntries:
    """Every entry found, with its score; in no order."""

    entries: Any  # int64
    scores: Any  # float64

    def restricted_to(self, entries: Any) -> "ScoredEntries":
        """Return the entries that are also in `entries`."""
        inside = np.isin(self.entries, entries)
        return ScoredEntries(self.entries[inside], self.scores[inside])

    def scaled(self, factor: float) -> "ScoredEntries":
        return ScoredEntries(self.entries, self.scores * factor)

    def best(self, count: int) -> dict[int, float]:
        """Return at least `count` entries if available, including ties with the last one."""
        entries, scores, excess = self.entries, self.scores, len(self.entries) - count
        if excess > 0:
            selected = scores >= np.partition(scores, excess)[excess]
            entries, scores = entries[selected], scores[selected]
        return dict(zip(entries.tolist(), scores.tolist(), strict=True))


class Postings:
    """The postings of one store. An entry has a position, ordered by number."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._size = 0
        self._numbers, self._spaces = np.empty(0, np.int64), np.empty(0, np.int32)
        self._bytes, self._expiry = np.empty(0, np.int32), np.empty(0, np.int64)
        self._words: OrderedDict[str, _WordPostings] = OrderedDict()
        self._cached_count = 0  # in postings
        self._log: list[int] = []  # numbers of written entries

    def __len__(self) -> int:
        return self._size

    def extend(self, rows: Sequence[EntryRow]) -> None:
        """Append entries in ascending order above all existing numbers. Each number just below the
        last one gets a position."""
        if not rows:
            return
        entry_numbers = np.array([row[0] for row in rows], np.int64)
        last = int(self._numbers[self._size - 1]) if self._size else 0
        numbers = np.union1d(
            entry_numbers,
            np.arange(max(last, int(entry_numbers[-1]) - _GAP) + 1, entry_numbers[-1]),
        )
        begin, self._size = self._size, self._size + len(numbers)
        for name, empty in (("_numbers", 0), ("_spaces", -1), ("_bytes", 0), ("_expiry", 0)):
            array = getattr(self, name)
            if self._size > len(array):
                padding = np.full(
                    max(self._size, len(array) * 3 // 2) - len(array), empty, array.dtype
                )
                setattr(self, name, np.concatenate([array, padding]))
        self._numbers[begin : self._size] = numbers
        self._write_rows(begin + np.searchsorted(numbers, entry_numbers), rows)

    def apply(self, rows: Sequence[EntryRow]) -> bool:
        """Apply changed entries. Return False if a rebuild is needed: out of order, or most entries
        were removed."""
        latest = sorted({entry[0]: entry for entry in rows}.values(), key=lambda entry: entry[0])
        positions = self._positions(np.array([entry[0] for entry in latest], np.int64))
        self._spaces[positions[positions >= 0]] = -1
        written = [
            (row, position)
            for row, position in zip(latest, positions.tolist(), strict=True)
            if row[1] is not None
        ]
        # numbers that were unused
        if reused := [(row, position) for row, position in written if position >= 0]:
            reused_positions = np.array([position for _row, position in reused])
            self._remove_positions(reused_positions)
            self._write_rows(reused_positions, [row for row, _position in reused])
        appended = [row for row, position in written if position < 0]
        if appended and self._size and appended[0][0] < self._numbers[self._size - 1]:
            return False
        self.extend(appended)
        self._log += [row[0] for row, _position in written]
        if len(self._log) > _MAX_LOG:
            self._log, self._cached_count = [], 0
            self._words.clear()
        return int((self._spaces[: self._size] < 0).sum()) <= self._size // 2 + 2 * _MAX_LOG

    def missing_postings(self, words: Sequence[str]) -> list[tuple[str, frozenset[int] | None]]:
        """Return what to read before ranking the words: the word and the entries to read, or None
        for all."""
        missing: list[tuple[str, frozenset[int] | None]] = []
        written: dict[int, frozenset[int]] = {}
        for word in words:
            cached = self._words.get(word)
            if cached is None:
                missing.append((word, None))
            elif cached.log_position < len(self._log):
                if cached.log_position not in written:
                    written[cached.log_position] = frozenset(self._log[cached.log_position :])
                missing.append((word, written[cached.log_position]))
        return missing

    def add_postings(self, word: str, numbers: Any, counts: Any) -> None:
        """Add the postings of a word: entries and occurrences. Unrequested entries are ignored."""
        cached = self._words.get(word)
        if cached is not None:
            inside = np.isin(numbers, self._log[cached.log_position :])
            numbers, counts = numbers[inside], counts[inside]
        all_positions = self._positions(numbers)
        positions, counts = (
            all_positions[all_positions >= 0].astype(np.int32),
            counts[all_positions >= 0].astype(np.float32),
        )
        if cached is not None:
            positions, counts = (
                np.concatenate([cached.positions, positions]),
                np.concatenate([cached.counts, counts]),
            )
        self._cache(word, _WordPostings(positions, counts, len(self._log)))

    def rank(
        self, words: Sequence[str], namespaces: Sequence[str], now: int, gain: ScoreGain
    ) -> ScoredEntries:
        """Rank the live entries of the namespaces with any of the words. Only the rarest words add
        to the score."""
        visible = self._visible(namespaces, now)
        counted = []
        for word in words:
            cached = self._words[word]
            self._words.move_to_end(word)
            inside = visible[cached.positions]
            positions = cached.positions[inside]
            if len(positions):
                counted.append((len(positions), word, positions, cached.counts[inside]))
        counted.sort(key=lambda item: item[:2])
        matched, scores = np.zeros(self._size, bool), np.zeros(self._size)
        for index, (entry_count, _word, positions, counts) in enumerate(counted):
            matched[positions] = True
            if index < MAX_WEIGHTED_WORDS:
                scores[positions] += gain(
                    entry_count, counts.astype(np.float64), self._bytes[positions]
                )
        while self._cached_count > MAX_POSTINGS and len(self._words) > 1:
            _word, dropped = self._words.popitem(last=False)
            self._cached_count -= WORD_OVERHEAD + len(dropped.positions)
        chosen = np.flatnonzero(matched)
        return ScoredEntries(self._numbers[chosen], scores[chosen])

    def _visible(self, namespaces: Sequence[str], now: int) -> Any:
        space_ids = [self._names[name] for name in set(namespaces) if name in self._names]
        spaces = self._spaces[: self._size]
        inside = spaces == space_ids[0] if len(space_ids) == 1 else np.isin(spaces, space_ids)
        return inside & (self._expiry[: self._size] > now)

    def _cache(self, word: str, postings: _WordPostings) -> None:
        cached = self._words.get(word)
        self._cached_count += len(postings.positions) - (
            len(cached.positions) if cached is not None else -WORD_OVERHEAD
        )
        self._words[word] = postings

    def _remove_positions(self, positions: Any) -> None:
        """Remove positions from all words, because other entries may reuse them."""
        for word, cached in self._words.items():
            others = ~np.isin(cached.positions, positions)
            if not others.all():
                self._cache(
                    word,
                    _WordPostings(
                        cached.positions[others], cached.counts[others], cached.log_position
                    ),
                )

    def _positions(self, numbers: Any) -> Any:
        """Return the positions of the entries, -1 for unknown ones."""
        if not self._size:
            return np.full(len(numbers), -1)
        positions = np.minimum(
            np.searchsorted(self._numbers[: self._size], numbers), self._size - 1
        )
        return np.where(self._numbers[positions] == numbers, positions, -1)

    def _write_rows(self, positions: Any, rows: Sequence[EntryRow]) -> None:
        names = self._names
        self._spaces[positions] = [names.setdefault(str(row[1]), len(names)) for row in rows]
        self._bytes[positions] = [row[2] for row in rows]
        self._expiry[positions] = [_NEVER if row[3] is None else row[3] for row in rows]
