"""Waits until a box is ready, showing what is missing, or until it cannot become ready."""

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
NO_ANSWER = "a response of the management API"
_DISK_FULL = "disk full: "


@dataclass(frozen=True)
class WaitResult:
    """The result of the wait. `verdict` is the last body of `/ready`, empty if the box never
    responded.
    """

    ready: bool
    seconds: float
    verdict: dict[str, Any] = field(default_factory=dict)
    exit_reason: str = ""  # why the box stopped, "" while it runs


def query_ready(api_url: str, timeout: float = 2.0) -> tuple[int, dict[str, Any]]:
    """Return status and body of `/ready`; status 0 without a response."""
    return query_json(api_url, "/ready", timeout)


def query_json(api_url: str, path: str, timeout: float = 2.0) -> tuple[int, dict[str, Any]]:
    """Return status and JSON body of a public route; status 0 without a response."""
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
    """Polls every 100 ms; `show` gets the elapsed seconds and what is missing. Ends early if the
    boot has failed, the box has stopped, or only disk space is missing. Raises AgentboxError if the
    engine itself does not respond.
    """
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
        return "the box was removed"
    code = "" if status.exit_code is None else f" with exit code {status.exit_code}"
    return f"the box ended{code} (restarts: {status.restarts})"


def boot_lines(engine: Engine, record: BoxRecord) -> list[str]:
    """Return the last lines of the box's log, enough for one boot."""
    return list(engine.logs(record, follow=False, lines=_BOOT_LINES, since=None))


def events_by_boot(lines: Iterable[str]) -> list[list[dict[str, Any]]]:
    """Return the events in the lines by boot, the last boot first."""
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
    """Return why the last boot (with `any_boot`, the last failed one) failed permanently; "" if it
    did not.
    """
    boots = events_by_boot(lines)
    for entry in (entry for boot in (boots if any_boot else boots[:1]) for entry in boot):
        if entry["event"] == "BootstrapFailed":
            return f"boot failed in phase {entry.get('phase')}: {entry.get('reason')}"
        if entry["event"] == "BootstrapSealTimeout":
            return (
                f"the seal timed out after {entry.get('timeout_seconds')} s waiting for "
                f"{_join_names(entry.get('waiting_for'))}"
            )
    return ""


def _join_names(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else str(names)


def suggested_fix(lines: Iterable[str]) -> str:
    """Return the fix that the most recent event with one suggests."""
    return next(
        (str(entry["fix"]) for boot in events_by_boot(lines) for entry in boot if entry.get("fix")),
        "",
    )
