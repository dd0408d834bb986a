"""Redacts a body while it is streamed: memory is limited to a few windows, whatever its size (to 1
MiB if it starts like JSON, which is parsed as a whole).
"""

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator

from agentbox.policy.redaction.findings import TextSpan, mask_spans
from agentbox.policy.redaction.redactor import (
    BASE_SECONDS,
    MAX_TOKEN,
    OVERLAP,
    SECONDS_PER_MIB,
    WINDOW,
    WINDOW_THRESHOLD,
    RedactionFailed,
    Redactor,
)

_LAST_WORD = re.compile(r"\s\S*\Z")


class RedactingStream:
    """An async iterator of the chunks, with all findings masked. `counts` and `sha256` (of the
    input) are updated with it. A body is passed unchanged if its first window is not UTF-8 or
    contains a NUL; a text from its first invalid byte on. Under `strict`, iterating raises
    RedactionFailed if the search fails or takes over 50 ms and 50 ms a MiB.
    """

    def __init__(self, redactor: Redactor, slot: str, chunks: AsyncIterator[bytes]) -> None:
        self.counts: Counter[str] = Counter()
        self.failed = 0
        self._redactor, self._slot, self._chunks = redactor, slot, chunks
        self._strict = redactor.policies.get(slot) == "strict"
        self._is_searching = (
            bool(redactor.detectors) and redactor.policies.get(slot, "off") != "off"
        )
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._sha256 = hashlib.sha256()
        # the end of the emitted text; text that is not emitted yet
        self._tail, self._pending = "", ""
        self._elapsed, self._size, self._has_emitted = 0.0, 0, False

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the input so far."""
        return self._sha256.hexdigest()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._run()

    async def _run(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            self._sha256.update(chunk)
            output = self._feed(chunk) if self._is_searching else chunk
            if output:
                yield output
        if self._is_searching and (last := self._finish()):
            yield last

    def _feed(self, chunk: bytes) -> bytes:
        partial, _ = self._decoder.getstate()  # bytes of an incomplete character
        try:
            new = self._decoder.decode(chunk)
        except UnicodeDecodeError as error:
            raw = partial + chunk
            self._pending += raw[: error.start].decode()
            return self._pass_binary(raw[error.start :])
        if "\0" in new and not self._has_emitted:
            self._pending, unread = "", self._pending + new
            self._is_searching = False
            return unread.encode() + self._decoder.getstate()[0]
        self._pending += new
        threshold = (
            WINDOW_THRESHOLD
            if not self._has_emitted and self._pending.lstrip()[:1] in ("{", "[")
            else WINDOW + OVERLAP
        )
        return b"" if len(self._pending) < threshold else self._emit(last_word_start(self._pending))

    def _pass_binary(self, raw: bytes) -> bytes:
        """Emits the pending text, searched only if text was emitted before, then the bytes
        unchanged.
        """
        self._is_searching = False
        text, self._pending = self._pending, ""
        if not self._has_emitted:
            return text.encode() + raw
        self._pending = text
        return self._emit(len(text)) + raw

    def _finish(self) -> bytes:
        partial, _ = self._decoder.getstate()
        if partial:
            return self._pass_binary(partial)
        return self._emit(len(self._pending)) if self._has_emitted else self._redact_at_once()

    def _redact_at_once(self) -> bytes:
        """Redacts a body that was not emitted yet as a whole, so that JSON is parsed."""
        body = self._pending.encode()
        redacted = self._redactor.redact(self._slot, "", {"body": body}, ("/body",), ())
        self.counts.update(redacted.counts)
        self.failed += redacted.failed
        self._pending, self._has_emitted = "", True
        result: bytes = redacted.document["body"]
        return result

    def _emit(self, length: int) -> bytes:
        """Emits about `length` pending characters, without cutting a finding."""
        text, start = self._tail + self._pending, len(self._tail)
        spans = [span for span in self._spans(text) if span.end > start]
        cut = start + length
        for span in spans:
            if span.start < cut < span.end:
                cut = span.start if span.start > start else span.end
        inside = [span for span in spans if start <= span.start and span.end <= cut]
        new, names = mask_spans(
            text[start:cut], [TextSpan(s.start - start, s.end - start, s.name) for s in inside]
        )
        self.counts.update(names)
        self._tail, self._pending, self._has_emitted = text[:cut][-OVERLAP:], text[cut:], True
        return new.encode()

    def _spans(self, text: str) -> list[TextSpan]:
        started = self._redactor.clock()
        self._size += len(text)
        try:
            spans = self._redactor.spans(text)
        except (RuntimeError, ValueError, RecursionError, MemoryError):
            self._fail("the search for sensitive data failed")
            return []
        self._elapsed += self._redactor.clock() - started
        if self._elapsed > BASE_SECONDS + SECONDS_PER_MIB * self._size / (1 << 20):
            self._fail("the search for sensitive data took too long")
        return sorted(spans)

    def _fail(self, reason: str) -> None:
        if self._strict:
            raise RedactionFailed(reason)
        self.failed += 1


def last_word_start(text: str) -> int:
    """How much to emit: all but the overlap, and not the start of a token that may continue."""
    limit, match = len(text) - OVERLAP, _LAST_WORD.search(text[-MAX_TOKEN:])
    return limit if match is None else min(limit, len(text) - len(match.group()))
