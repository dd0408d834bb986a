"""Which entries have a word, and how often, in memory: a search adds up arrays instead of asking for each entry by SQL.

A word's postings are read when a search first asks for the word, and held while there is room; those of entries that were
written since, when the word is asked for again. Every count is taken over the entries that a search may see, so that its
scores tell nothing of others. Nothing here locks: who holds one asks it from one thread at a time.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentbox.adapters.memory.ranking import WEIGHED

MOST = 16_000_000  # postings held, 8 bytes each
WORD = 100  # postings that a word itself counts for
_LOG = 10_000  # entries that a word may be behind; then its postings are read anew
_GAP = 4096  # numbers left free for entries whose transactions are not yet over
_NEVER = np.iinfo(np.int64).max

Row = tuple[int, str | None, int, int | None]  # number, namespace (None: the entry is gone), bytes, expiry
Gain = Callable[[int, Any, Any], Any]
"""What a word adds to each score: by how many entries have it, how often each does, and the bytes of each."""


@dataclass(slots=True)
class _Word:
    """Places and counts, each place once. `seen` is how far in the log of changes."""

    places: Any  # int32
    counts: Any  # float32
    seen: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """Every entry found, with its score; in no order."""

    entries: Any  # int64
    scores: Any  # float64

    def among(self, entries: Any) -> "Ranked":
        """Those of these entries."""
        inside = np.isin(self.entries, entries)
        return Ranked(self.entries[inside], self.scores[inside])

    def times(self, factor: float) -> "Ranked":
        return Ranked(self.entries, self.scores * factor)

    def best(self, most: int) -> dict[int, float]:
        """At least so many, if there are: with those that equal the last one."""
        entries, scores, cut = self.entries, self.scores, len(self.entries) - most
        if cut > 0:
            above = scores >= np.partition(scores, cut)[cut]
            entries, scores = entries[above], scores[above]
        return dict(zip(entries.tolist(), scores.tolist(), strict=True))


class Postings:
    """The postings of one store. An entry has a place, in the order of numbers."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._size = 0
        self._numbers, self._spaces = np.empty(0, np.int64), np.empty(0, np.int32)
        self._bytes, self._expiry = np.empty(0, np.int32), np.empty(0, np.int64)
        self._words: OrderedDict[str, _Word] = OrderedDict()
        self._held = 0  # postings
        self._log: list[int] = []  # numbers of entries that were written

    def __len__(self) -> int:
        return self._size

    def extend(self, rows: Sequence[Row]) -> None:
        """Appends entries, ascending and above all numbers there are. Just below the last one each number gets a place."""
        if not rows:
            return
        given = np.array([one[0] for one in rows], np.int64)
        last = int(self._numbers[self._size - 1]) if self._size else 0
        numbers = np.union1d(given, np.arange(max(last, int(given[-1]) - _GAP) + 1, given[-1]))
        begin, self._size = self._size, self._size + len(numbers)
        for name, empty in (("_numbers", 0), ("_spaces", -1), ("_bytes", 0), ("_expiry", 0)):
            array = getattr(self, name)
            if self._size > len(array):
                room = np.full(max(self._size, len(array) * 3 // 2) - len(array), empty, array.dtype)
                setattr(self, name, np.concatenate([array, room]))
        self._numbers[begin : self._size] = numbers
        self._put(begin + np.searchsorted(numbers, given), rows)

    def apply(self, rows: Sequence[Row]) -> bool:
        """What became of entries. False when it must be built anew: out of order, or mostly of entries that are gone."""
        latest = sorted({one[0]: one for one in rows}.values(), key=lambda one: one[0])
        places = self._places(np.array([one[0] for one in latest], np.int64))
        self._spaces[places[places >= 0]] = -1
        written = [(row, place) for row, place in zip(latest, places.tolist(), strict=True) if row[1] is not None]
        if again := [(row, place) for row, place in written if place >= 0]:  # numbers that were free
            known = np.array([place for _row, place in again])
            self._remove(known)
            self._put(known, [row for row, _place in again])
        later = [row for row, place in written if place < 0]
        if later and self._size and later[0][0] < self._numbers[self._size - 1]:
            return False
        self.extend(later)
        self._log += [row[0] for row, _place in written]
        if len(self._log) > _LOG:
            self._log, self._held = [], 0
            self._words.clear()
        return int((self._spaces[: self._size] < 0).sum()) <= self._size // 2 + 2 * _LOG

    def wanted(self, words: Sequence[str]) -> list[tuple[str, frozenset[int] | None]]:
        """What has to be read before these words are ranked: a word's postings among these entries, or (None) all."""
        found: list[tuple[str, frozenset[int] | None]] = []
        written: dict[int, frozenset[int]] = {}
        for word in words:
            held = self._words.get(word)
            if held is None:
                found.append((word, None))
            elif held.seen < len(self._log):
                if held.seen not in written:
                    written[held.seen] = frozenset(self._log[held.seen :])
                found.append((word, written[held.seen]))
        return found

    def take(self, word: str, numbers: Any, counts: Any) -> None:
        """What was wanted of a word: which entries have it, and how often each. Others of them are passed over."""
        old = self._words.get(word)
        if old is not None:
            inside = np.isin(numbers, self._log[old.seen :])
            numbers, counts = numbers[inside], counts[inside]
        at = self._places(numbers)
        places, counts = at[at >= 0].astype(np.int32), counts[at >= 0].astype(np.float32)
        if old is not None:
            places, counts = np.concatenate([old.places, places]), np.concatenate([old.counts, counts])
        self._hold(word, _Word(places, counts, len(self._log)))

    def ranked(self, words: Sequence[str], namespaces: Sequence[str], now: int, gain: Gain) -> Ranked:
        """What has one of the words, in these namespaces, and has not expired. Only the rarest words are weighed."""
        visible = self._visible(namespaces, now)
        counted = []
        for word in words:
            held = self._words[word]
            self._words.move_to_end(word)
            inside = visible[held.places]
            places = held.places[inside]
            if len(places):
                counted.append((len(places), word, places, held.counts[inside]))
        counted.sort(key=lambda one: one[:2])
        found, scores = np.zeros(self._size, bool), np.zeros(self._size)
        for at, (having, _word, places, counts) in enumerate(counted):
            found[places] = True
            if at < WEIGHED:
                scores[places] += gain(having, counts.astype(np.float64), self._bytes[places])
        while self._held > MOST and len(self._words) > 1:
            _word, dropped = self._words.popitem(last=False)
            self._held -= WORD + len(dropped.places)
        chosen = np.flatnonzero(found)
        return Ranked(self._numbers[chosen], scores[chosen])

    def _visible(self, namespaces: Sequence[str], now: int) -> Any:
        asked = [self._names[name] for name in set(namespaces) if name in self._names]
        spaces = self._spaces[: self._size]
        inside = spaces == asked[0] if len(asked) == 1 else np.isin(spaces, asked)
        return inside & (self._expiry[: self._size] > now)

    def _hold(self, word: str, postings: _Word) -> None:
        old = self._words.get(word)
        self._held += len(postings.places) - (len(old.places) if old is not None else -WORD)
        self._words[word] = postings

    def _remove(self, places: Any) -> None:
        """Takes places out of every word, because they may be another entry's next."""
        for word, held in self._words.items():
            rest = ~np.isin(held.places, places)
            if not rest.all():
                self._hold(word, _Word(held.places[rest], held.counts[rest], held.seen))

    def _places(self, numbers: Any) -> Any:
        """Where these entries are, -1 for what is unknown."""
        if not self._size:
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self._numbers[: self._size], numbers), self._size - 1)
        return np.where(self._numbers[at] == numbers, at, -1)

    def _put(self, places: Any, rows: Sequence[Row]) -> None:
        names = self._names
        self._spaces[places] = [names.setdefault(str(one[1]), len(names)) for one in rows]
        self._bytes[places] = [one[2] for one in rows]
        self._expiry[places] = [_NEVER if one[3] is None else one[3] for one in rows]
