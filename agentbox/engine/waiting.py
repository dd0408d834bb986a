"""Watching a box become ready: what is still missing, by name, until it is, or until it is clear that it never will."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agentbox.engine.base import Engine
from agentbox.engine.state import BoxRecord

_POLL_SECONDS = 0.1
_INSPECT_EVERY = 1.0


@dataclass(frozen=True)
class Waited:
    """How the wait ended. `verdict` is the last body of `/ready`, empty when the box never answered."""

    ready: bool
    seconds: float
    verdict: dict[str, Any] = field(default_factory=dict)
    ended: str = ""  # why the box is no longer running, "" while it is


def ask_ready(api_url: str, timeout: float = 2.0) -> tuple[int, dict[str, Any]]:
    """Status and body of `/ready`; status 0 when nothing answers."""
    parts = urlsplit(api_url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=timeout)
    try:
        connection.request("GET", "/ready")
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()


def wait_until_ready(
    engine: Engine, record: BoxRecord, timeout: float, show: Callable[[float, list[str]], None]
) -> Waited:
    """Polls every 100 ms; `show` gets the seconds so far and what is missing. Ends early when the box stops."""
    started = time.monotonic()
    inspected, verdict = started, dict[str, Any]()
    while (seconds := time.monotonic() - started) < timeout:
        status, body = ask_ready(record.api_url)
        if status == 200:
            return Waited(True, seconds, body)
        verdict = body or verdict
        show(seconds, verdict.get("missing", ["the management API does not answer yet"]))
        if time.monotonic() - inspected > _INSPECT_EVERY:
            inspected = time.monotonic()
            running = engine.inspect(record)
            if running.state != "running" or running.restarts > 0:
                return Waited(
                    False,
                    seconds,
                    verdict,
                    f"the box ended ({running.state}, exit code {running.exit_code}, {running.restarts} restarts)",
                )
        time.sleep(_POLL_SECONDS)
    return Waited(False, time.monotonic() - started, verdict)
