"""Reads the records of a journal directory without a box, after verifying the whole journal."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.adapters.events.journal import chain
from agentbox.adapters.events.journal.segments import damage_error, read_lines, segment_files
from agentbox.adapters.events.journal.verify import verify
from agentbox.contracts.events import Event


def read_events(directory: Path, *, since: int = -1) -> Iterator[Event]:
    """Yield all records after `since` that existed when the verification began.

    Raises IntegrityError with the position of the first damage before the first record, NotFound if
    the directory does not exist.
    """
    report = verify(directory)
    if report.error is not None:
        error = report.error
        raise damage_error(directory / error.file, error.line, error.seq, error.reason)
    return _records(directory, max(since + 1, report.first_seq), report.last_seq)


def _records(directory: Path, first: int, last: int) -> Iterator[Event]:
    for path in segment_files(directory):
        with path.open("rb") as stream:
            for line, complete in read_lines(stream):
                parsed = chain.parse_line(line)
                if parsed is None or not complete or parsed.seq > last:
                    return
                if parsed.seq >= first:
                    yield chain.decode_event(line)
