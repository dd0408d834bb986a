"""A body that comes in pieces, searched and masked on its way: memory stays that of a few windows, whatever its size (of a body
that begins as JSON does: a MiB, which is looked into as one that came at once)."""

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator

from agentbox.policy.redaction.findings import Span, masked
from agentbox.policy.redaction.guard import (
    BASE_SECONDS,
    LONGEST,
    OVERLAP,
    SECONDS_PER_MIB,
    WHOLE,
    WINDOW,
    Guard,
    Rejected,
)

_LAST_WORD = re.compile(r"\s\S*\Z")


class Flow:
    """An async iterator of the pieces, with every finding masked. `counts` and `sha256` (of what was given) grow with it.

    A body whose first window is no UTF-8, or holds a NUL, passes as it is; so does a text from the byte on that is no
    UTF-8. Under `strict` iterating raises Rejected when the search fails, or takes over 50 ms and 50 ms a MiB.
    """

    def __init__(self, guard: Guard, slot: str, pieces: AsyncIterator[bytes]) -> None:
        self.counts: Counter[str] = Counter()
        self.failed = 0
        self._guard, self._slot, self._pieces = guard, slot, pieces
        self._strict = guard.policies.get(slot) == "strict"
        self._text = bool(guard.detectors) and guard.policies.get(slot, "off") != "off"
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._sha256 = hashlib.sha256()
        self._seen, self._rest = "", ""  # the end of what was passed on, and what was not yet
        self._spent, self._size, self._passed = 0.0, 0, False

    @property
    def sha256(self) -> str:
        """Hex, of the bytes that came so far."""
        return self._sha256.hexdigest()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._run()

    async def _run(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            self._sha256.update(piece)
            found = self._add(piece) if self._text else piece
            if found:
                yield found
        if self._text and (last := self._end()):
            yield last

    def _add(self, piece: bytes) -> bytes:
        held, _ = self._decoder.getstate()  # bytes of a character that is not whole yet
        try:
            new = self._decoder.decode(piece)
        except UnicodeDecodeError as error:
            raw = held + piece
            self._rest += raw[: error.start].decode()
            return self._no_text(raw[error.start :])
        if "\0" in new and not self._passed:
            self._rest, unread = "", self._rest + new
            self._text = False
            return unread.encode() + self._decoder.getstate()[0]
        self._rest += new
        hold = WHOLE if not self._passed and self._rest.lstrip()[:1] in ("{", "[") else WINDOW + OVERLAP
        return b"" if len(self._rest) < hold else self._pass_on(before_word(self._rest))

    def _no_text(self, raw: bytes) -> bytes:
        """What was held back, searched only where the body was a text until here; then the bytes as they are."""
        self._text = False
        text, self._rest = self._rest, ""
        if not self._passed:
            return text.encode() + raw
        self._rest = text
        return self._pass_on(len(text)) + raw

    def _end(self) -> bytes:
        held, _ = self._decoder.getstate()
        if held:
            return self._no_text(held)
        return self._pass_on(len(self._rest)) if self._passed else self._whole()

    def _whole(self) -> bytes:
        """A body of which nothing was passed on yet: as one that came at once, so that JSON is looked into."""
        body = self._rest.encode()
        found = self._guard.clean(self._slot, "", {"body": body}, ("/body",), ())
        self.counts.update(found.counts)
        self.failed += found.failed
        self._rest, self._passed = "", True
        whole: bytes = found.document["body"]
        return whole

    def _pass_on(self, upto: int) -> bytes:
        """The first characters of what is held back, and a little more or less, so that no finding is cut."""
        text, start = self._seen + self._rest, len(self._seen)
        spans = [span for span in self._spans(text) if span.end > start]
        cut = start + upto
        for span in spans:
            if span.start < cut < span.end:
                cut = span.start if span.start > start else span.end
        within = [span for span in spans if start <= span.start and span.end <= cut]
        new, names = masked(text[start:cut], [Span(s.start - start, s.end - start, s.name) for s in within])
        self.counts.update(names)
        self._seen, self._rest, self._passed = text[:cut][-OVERLAP:], text[cut:], True
        return new.encode()

    def _spans(self, text: str) -> list[Span]:
        began = self._guard.seconds()
        self._size += len(text)
        try:
            found = self._guard.spans(text)
        except (RuntimeError, ValueError, RecursionError, MemoryError):
            self._fail("the search for private data failed")
            return []
        self._spent += self._guard.seconds() - began
        if self._spent > BASE_SECONDS + SECONDS_PER_MIB * self._size / (1 << 20):
            self._fail("the search for private data took too long")
        return sorted(found)

    def _fail(self, why: str) -> None:
        if self._strict:
            raise Rejected(why)
        self.failed += 1


def before_word(text: str) -> int:
    """How much to pass on: all but the overlap, and not the beginning of a token that is longer and may go on."""
    upto, last = len(text) - OVERLAP, _LAST_WORD.search(text[-LONGEST:])
    return upto if last is None else min(upto, len(text) - len(last.group()))
