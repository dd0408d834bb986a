"""Imports the boot's log into the journal: each line of `events.jsonl` once, and the sentinel's
hash.
"""

import re
from typing import TYPE_CHECKING, Any

import structlog

from agentbox.box.supervision.boot_event_log import read_events_from
from agentbox.box.supervision.sentinel import read_sentinel
from agentbox.contracts.events import NewEvent
from agentbox.core.slot_errors import AdapterError, ValidationError, ValueTooLarge

if TYPE_CHECKING:
    from agentbox.contracts.events import Events
    from agentbox.core.paths import Paths

BATCH = 100
PERMANENT_ERRORS = (ValidationError, ValueTooLarge)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_log = structlog.get_logger()


def event_type(event: str) -> str:
    """`BootstrapStarted` -> `boot.bootstrap_started`."""
    return "boot." + _WORD.sub("_", event).lower()


class BootEvents:
    """The journal stores a (source, id) once, so a repeated import after a restart of the API adds
    nothing.
    """

    def __init__(self, paths: "Paths", box: str, boot_id: str, events: "Events") -> None:
        self._paths = paths
        self._source = f"urn:agentbox:box:{box}"
        self._boot_id = boot_id
        self._events = events
        self._offset = 0  # bytes of the file read so far
        self._pending: list[dict[str, Any]] = []  # lines read but not yet in the journal
        self.sealed_sha256: str | None = None

    async def import_new(self) -> list[dict[str, Any]]:
        """Appends the next lines, BATCH at most, and returns them; none when all are in the
        journal. Raises AdapterError; the next call tries again. A line that the journal permanently
        rejects is reported as `boot.event_refused`.
        """
        lines, self._offset = read_events_from(self._paths, self._offset)
        self._pending += lines
        batch = self._pending[:BATCH]
        if batch:
            try:
                await self._events.append([self._event(line) for line in batch])
            except PERMANENT_ERRORS:
                batch = batch[:1]
                await self._append_or_report(batch[0])
            del self._pending[: len(batch)]
        return batch

    async def _append_or_report(self, line: dict[str, Any]) -> None:
        try:
            await self._events.append([self._event(line)])
        except PERMANENT_ERRORS as error:
            _log.error("boot event rejected", event_name=line["event"], reason=error.message)
            data = {"boot_id": line["boot_id"], "event": line["event"], "reason": error.code}
            refusal = NewEvent(
                type="boot.event_refused", data=data, source=self._source, id=self._id(line)
            )
            await self._events.append([refusal])

    async def record_seal(self) -> str | None:
        """The hash with which this boot was sealed, None before that. The journal's hash counts,
        not the file's: a sentinel that was changed while the API was down is not trusted. Raises
        AdapterError.
        """
        if (
            self.sealed_sha256 is None
            and (sentinel := read_sentinel(self._paths.sentinel)) is not None
        ):
            if sentinel.document.get("boot_id") != self._boot_id:
                return None
            data = {"boot_id": self._boot_id, "sentinel_sha256": sentinel.sha256}
            event = NewEvent(
                type="boot.sealed", data=data, source=self._source, id=f"{self._boot_id}:sealed"
            )
            stored = (await self._events.append([event]))[0]
            self.sealed_sha256 = str(stored.data["sentinel_sha256"])
        return self.sealed_sha256

    def _event(self, line: dict[str, Any]) -> NewEvent:
        data = {name: value for name, value in line.items() if name not in ("event", "seq")}
        return NewEvent(
            type=event_type(line["event"]), data=data, source=self._source, id=self._id(line)
        )

    @staticmethod
    def _id(line: dict[str, Any]) -> str:
        return f"{line['boot_id']}:{line['seq']}"


async def flush(boot_events: BootEvents) -> None:
    """A last import before the journal closes. What cannot be appended stays in `events.jsonl`
    only.
    """
    try:
        while await boot_events.import_new():
            continue
    except AdapterError as error:
        _log.warning("boot events not imported", reason=error.message)
