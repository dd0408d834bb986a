"""Watching a box become ready: what is still missing, by name, until it is, or until it is clear that it never will."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentbox.host.engines.base import BoxStatus, Engine
from agentbox.host.engines.state import BoxRecord

_POLL_SECONDS = 0.1
_INSPECT_EVERY = 1.0
_BOOT_LINES = 200
NO_ANSWER = "an answer of the management API"
_DISK_FULL = "disk full: "


@dataclass(frozen=True)
class WaitResult:
    """How the wait ended. `verdict` is the last body of `/ready`, empty when the box never answered."""

    ready: bool
    seconds: float
    verdict: dict[str, Any] = field(default_factory=dict)
    exit_reason: str = ""  # why the box is no longer running, "" while it is


def query_ready(api_url: str, timeout: float = 2.0) -> tuple[int, dict[str, Any]]:
    """Status and body of `/ready`; status 0 when nothing answers."""
    return query_json(api_url, "/ready", timeout)


def query_json(api_url: str, path: str, timeout: float = 2.0) -> tuple[int, dict[str, Any]]:
    """The same of any public route."""
    parts = urlsplit(api_url)
    connection = http.client.HTTPConnection(
        parts.hostname or "127.0.0.1", parts.port, timeout=timeout
    )
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()


def wait_until_ready(
    engine: Engine, record: BoxRecord, timeout: float, show: Callable[[float, list[str]], None]
) -> WaitResult:
    """Polls every 100 ms; `show` gets the seconds so far and what is missing. Ends early when the boot has failed, the
    box has stopped, or all that is missing is room on a disk, which does not come by itself. Raises AgentboxError when the engine itself stops answering."""
    started = time.monotonic()
    inspected, verdict = started, dict[str, Any]()
    restarts: int | None = None
    while (seconds := time.monotonic() - started) < timeout:
        status, body = query_ready(record.api_url)
        if status == 200:
            return WaitResult(True, seconds, body)
        verdict = body or verdict
        missing = verdict.get("missing", [NO_ANSWER])
        show(seconds, missing)
        if all(item.startswith(_DISK_FULL) for item in missing):
            return WaitResult(False, seconds, verdict)
        if time.monotonic() - inspected > _INSPECT_EVERY:
            inspected = time.monotonic()
            box_status = engine.inspect(record)
            restarts = (
                box_status.restarts
                if restarts is None and box_status.state == "running"
                else restarts
            )
            lines = boot_lines(engine, record)
            if exit_reason := _exit_reason(box_status, restarts):
                return WaitResult(
                    False, seconds, verdict, boot_failure(lines, any_boot=True) or exit_reason
                )
            if failure_text := boot_failure(lines):
                return WaitResult(False, seconds, verdict, failure_text)
        time.sleep(_POLL_SECONDS)
    return WaitResult(False, time.monotonic() - started, verdict)


def _exit_reason(status: BoxStatus, restarts: int | None) -> str:
    if status.state == "running" and status.restarts == (restarts or status.restarts):
        return ""
    if status.state == "absent":
        return "the box is gone: somebody removed it"
    code = "" if status.exit_code is None else f" with exit code {status.exit_code}"
    return f"the box ended{code} (restarts: {status.restarts})"


def boot_lines(engine: Engine, record: BoxRecord) -> list[str]:
    """The last lines of the box's log, enough for a whole boot."""
    return list(engine.logs(record, follow=False, lines=_BOOT_LINES, since=None))


def events_by_boot(lines: Iterable[str]) -> list[list[dict[str, Any]]]:
    """The events among the lines, by boot; the last boot comes first."""
    boots: list[list[dict[str, Any]]] = [[]]
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and "event" in entry:
            if entry["event"] == "BootstrapStarted":
                boots.insert(0, [])
            boots[0].append(entry)
    return boots


def boot_failure(lines: Iterable[str], *, any_boot: bool = False) -> str:
    """What made the last boot, or the last that failed, fail for good; "" when nothing did."""
    boots = events_by_boot(lines)
    for entry in (entry for boot in (boots if any_boot else boots[:1]) for entry in boot):
        if entry["event"] == "BootstrapFailed":
            return f"boot failed in phase {entry.get('phase')}: {entry.get('reason')}"
        if entry["event"] == "BootstrapSealTimeout":
            return f"the seal waited {entry.get('timeout_seconds')} s in vain for {_join_names(entry.get('waiting_for'))}"
    return ""


def _join_names(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)


def suggested_fix(lines: Iterable[str]) -> str:
    """The remedy that the last boot which named one named."""
    return next(
        (str(entry["fix"]) for boot in events_by_boot(lines) for entry in boot if entry.get("fix")),
        "",
    )
