"""Routes of the box other than probes."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbox.api.background.apply import apply_mounted
from agentbox.api.http.request import ApiRequest
from agentbox.api.openapi import document
from agentbox.box.supervision.events import read_events
from agentbox.box.supervision.timeline import boot_report
from agentbox.contracts.box import Applied, Draining
from agentbox.core.files.atomic import read_json
from agentbox.core.paths import Paths


async def openapi(request: ApiRequest) -> Mapping[str, Any]:
    return document()


async def boot(request: ApiRequest) -> Mapping[str, Any]:
    """Record, phases, events and sentinel of this boot; parts not written yet are null or empty."""
    return await asyncio.to_thread(_boot, request.services.paths, request.query.get("boot_id", ""))


def _boot(paths: Paths, boot_id: str) -> dict[str, Any]:
    return {
        "record": read_json(paths.boot_record),
        "phases": _lines(paths.phases),
        "events": list(read_events(paths)),
        "sentinel": read_json(paths.sentinel),
        **boot_report(paths, boot_id),
    }


def _lines(path: Path) -> list[Any]:
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return []


async def drain(request: ApiRequest) -> Draining:
    """Returns immediately; `/ready` reports `draining`."""
    request.services.drain.begin("requested")
    return Draining(state=request.services.drain.state)


async def apply(request: ApiRequest) -> Applied:
    return await apply_mounted(request.services)
