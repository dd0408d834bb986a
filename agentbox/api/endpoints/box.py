"""Routes of the box other than probes."""

import asyncio
import json
from pathlib import Path
from typing import Any

from agentbox.api.background.apply import apply_mounted
from agentbox.api.http.call import Call
from agentbox.api.http.reply import Reply
from agentbox.api.openapi import document
from agentbox.box.supervision.events import read_events
from agentbox.box.supervision.timeline import boot_report
from agentbox.contracts.bodies import Draining
from agentbox.core.files.atomic import read_json
from agentbox.core.paths import Paths


async def openapi(call: Call) -> Reply:
    return Reply(document())


async def boot(call: Call) -> Reply:
    """Record, phases, events and sentinel of this boot; parts not written yet are null or empty."""
    return Reply(await asyncio.to_thread(_boot, call.services.paths, call.query.get("boot_id", "")))


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


async def drain(call: Call) -> Reply:
    """Returns immediately; `/ready` reports `draining`."""
    call.services.drain.begin("requested")
    return Reply(Draining(state=call.services.drain.state), status=202)


async def apply(call: Call) -> Reply:
    return Reply(await apply_mounted(call.services))
