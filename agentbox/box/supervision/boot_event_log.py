"""Boot events: one JSON object per line, on stdout and in `events.jsonl`. The table is closed.
Standard library only.

Several processes write (both boot stages, the seal, the API, restarting programs), so the sequence
number is taken under an exclusive lock of the file: last line plus one.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from agentbox.core import clock
from agentbox.core.canonical import canonical_json
from agentbox.core.paths import Paths

# event -> (levels, the first is the default; fields)
EVENTS: Mapping[str, tuple[str, str]] = {
    "BootstrapStarted": ("info", "version kernel landlock_abi uid strict previous_shutdown"),
    "ImmutableRootWritable": ("warn", "path"),
    "PostureChecked": ("info", "expected found control"),
    "PostureDrift": ("warn", "expected found control"),
    "ManifestDrift": ("info warn error", "keys class source"),
    "PreviousBootUnclean": ("warn", "previous_boot_id last_seq"),
    "WritableRootReady": ("debug", "path errno free_bytes"),
    "WritableRootFailed": ("fatal", "path errno free_bytes"),
    "ApiTokenResolved": ("info", "source"),
    "PasswordResolved": ("info", "name source"),
    "IdentityReady": ("info", "pubkey created"),
    "SecurityProfileApplied": ("info", "baseline exceptions seccomp_digest"),
    "PhaseCompleted": ("debug", "phase ms budget_ms"),
    "BootPhaseSlow": ("warn", "phase ms budget_ms"),
    "TestHookIgnored": ("warn", "name"),
    "ReadinessChanged": ("warn", "from to missing"),
    "CapabilityValidated": ("info", "capability ms"),
    "OptionalArtifactMissing": ("warn", "capability reason"),
    "MissingArtifactDetected": ("error", "capability reason"),
    "RuntimeClosureValidated": ("info", "probes required optional_missing"),
    "SupervisorStarting": ("info", "programs"),
    "BootstrapSealStarted": ("info", "required_programs timeout_seconds"),
    "WaitingForProgram": ("debug", "program status elapsed_seconds"),
    "ProgramFailed": ("error", "program reason fix"),
    "ProgramRestarting": ("warn", "program starts wait_seconds"),
    "BootstrapCompleted": ("info", "sentinel sentinel_sha256 elapsed_seconds"),
    "BootstrapSealTimeout": ("error", "waiting_for timeout_seconds"),
    "BootstrapFailed": ("fatal", "phase reason fix"),
    "ShutdownStarted": ("info", "reason drained_ms"),
    "ShutdownCompleted": ("info", "reason drained_ms tasks_ended tasks_left"),
}
STAGE = "bootstrap"
_TAIL = 1 << 16  # bytes read back to find the last line; every line is far shorter


@dataclass(frozen=True)
class BootEventLog:
    """Writes events of one boot. `emit` rejects an event, a field or a level that is not in the
    table.
    """

    paths: Paths
    boot_id: str
    plan_digest: str = ""
    image_ref: str = ""
    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def emit(self, event: str, *, level: str | None = None, **fields: Any) -> None:
        """Writes one line in both places; only to stdout when `events.jsonl` cannot be written,
        which phase 1 reports.
        """
        record = {
            "agentbox.stage": STAGE,
            "boot_id": self.boot_id,
            "event": event,
            "image_ref": self.image_ref,
            "level": _check_level(event, level, fields),
            "plan_digest": self.plan_digest,
            "time": clock.to_wire(clock.now()),
            **fields,
        }
        line = self._append(record)
        self.stream.write(line)
        self.stream.flush()

    def _append(self, record: dict[str, Any]) -> str:
        with _locked(self.paths) as descriptor:
            record["seq"] = 0 if descriptor is None else _last_seq(descriptor) + 1
            line = canonical_json(record) + b"\n"
            if descriptor is not None:
                _write(descriptor, line)
        return line.decode()


def read_events(paths: Paths) -> Iterator[dict[str, Any]]:
    """All complete events of this boot, in order. A last line without a newline is not read."""
    yield from read_events_from(paths, 0)[0]


def read_events_from(paths: Paths, offset: int) -> tuple[list[dict[str, Any]], int]:
    """The complete events from that byte of the file on, and the offset of the next one."""
    try:
        with paths.boot_events.open("rb") as stream:
            stream.seek(offset)
            data = stream.read()
    except FileNotFoundError:
        return [], offset
    complete = data[: data.rfind(b"\n") + 1]
    return [json.loads(line) for line in complete.splitlines()], offset + len(complete)


def _check_level(event: str, level: str | None, fields: Mapping[str, Any]) -> str:
    levels, names = EVENTS[event]
    allowed = levels.split()
    if unknown := set(fields) - set(names.split()):
        raise ValueError(f"event {event} has no field {min(unknown)}")
    if level is not None and level not in allowed:
        raise ValueError(f"event {event} has no level {level}")
    return level or allowed[0]


@contextmanager
def _locked(paths: Paths) -> Iterator[int | None]:
    try:
        descriptor = os.open(
            paths.boot_events, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
    except OSError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, line: bytes) -> None:
    """Appends the complete line or nothing: on a full disk only stdout has the event."""
    size = os.fstat(descriptor).st_size
    try:
        complete = os.write(descriptor, line) == len(line)
    except OSError:
        complete = False
    if not complete:
        os.ftruncate(descriptor, size)


def _last_seq(descriptor: int) -> int:
    size = os.fstat(descriptor).st_size
    lines = os.pread(descriptor, _TAIL, max(0, size - _TAIL)).splitlines()
    return int(json.loads(lines[-1])["seq"]) if lines else 0
