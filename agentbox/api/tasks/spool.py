"""The data that the runner needs after a crash: one file per task, written before each effect."""

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Self

import structlog

from agentbox.adapters.runtime.context import CallContext, TaskSubmission, current
from agentbox.core.files.atomic import replace_json, sync_directory
from agentbox.core.frozen import frozen
from agentbox.core.ids import new_trace_id

_log = structlog.get_logger()


@frozen
class SpoolEntry:
    """A task that has not ended. The spec is here, not in the bead, whose text passes the privacy
    filter.

    `orphan` is a result that the store of beads rejected: it is only stored. `lease_id` and
    `request_id` are set before the bead is claimed, `agent_id` after the spawn; `cancelled_by` is
    the caller who cancelled it. `ref` is the id of the state that every attempt uses, `trace_id`
    the trace of all of them.
    """

    ref: str
    spec: dict[str, Any]
    timeout_s: float
    input: str | None = None  # base64
    attached: bool = False  # its submitter reads its log
    submitter: str = ""
    submitter_admin: bool = False
    trace_id: str = field(default_factory=lambda: current().trace_id or new_trace_id())
    task_id: str | None = None
    lease_id: str | None = None
    request_id: str | None = None
    agent_id: str | None = None
    generation: int = 0
    cancelled_by: str | None = None
    orphan: dict[str, Any] | None = None

    @property
    def stdin(self) -> bytes | None:
        """The bytes of the program's standard input, None without one."""
        return None if self.input is None else base64.b64decode(self.input)

    @property
    def submission(self) -> TaskSubmission:
        """The principal and the state with which its agent is started."""
        return TaskSubmission(
            principal=self.submitter, admin=self.submitter_admin, state_id=self.ref
        )

    def context(self) -> CallContext:
        """The context of calls for this task: with its session and trace."""
        return replace(current(), session_id=self.task_id, trace_id=self.trace_id)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises ValueError for an invalid file."""
        try:
            return cls(**json.loads(path.read_bytes()))
        except TypeError as error:
            raise ValueError(f"{path.name} is not a spool entry: {error}") from error


class Spool:
    """The directory of entries (0700; files 0600)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self) -> None:
        """Creates the directory. Raises OSError."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def save(self, entry: SpoolEntry) -> SpoolEntry:
        """Durable when it returns; the disk is written in a thread. Raises OSError."""
        path = self._path(entry.ref)
        await asyncio.to_thread(replace_json, path, asdict(entry), mode=0o600)
        return entry

    def load(self, ref: str) -> SpoolEntry | None:
        """None when the entry is missing or invalid, and for "". Raises OSError."""
        if not ref:
            return None
        try:
            return SpoolEntry.read(self._path(ref))
        except FileNotFoundError:
            return None
        except ValueError as error:
            _log.error("spool entry unreadable", ref=ref, reason=str(error))
            return None

    async def remove(self, ref: str) -> None:
        """Durable when it returns; no error when it is missing."""
        self._path(ref).unlink(missing_ok=True)
        await asyncio.to_thread(sync_directory, self._directory)

    async def result_stored(self, ref: str) -> None:
        """The store has accepted the result: removes the entry."""
        await self.remove(ref)

    async def result_refused(self, ref: str, result: Mapping[str, Any]) -> None:
        """The store rejected the result: stores it in the entry. Raises OSError."""
        if (entry := self.load(ref)) is not None:
            await self.save(replace(entry, orphan=dict(result)))

    def entries(self) -> Iterator[SpoolEntry]:
        """All valid entries, oldest first (refs are UUIDs of version 7)."""
        for path in sorted(self._directory.glob("*.json")):
            if (entry := self.load(path.stem)) is not None:
                yield entry

    def _path(self, ref: str) -> Path:
        if "/" in ref or ref.startswith("."):
            raise ValueError(f"{ref!r} is not a valid spool entry name")
        return self._directory / f"{ref}.json"
