"""Routes of the box other than probes."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbox.api.background.apply import ManifestApplier
from agentbox.api.background.drain import Drain
from agentbox.box.supervision.boot_event_log import read_events
from agentbox.contracts.box import Applied, Draining
from agentbox.core.files.atomic import read_json
from agentbox.core.paths import Paths


class BoxHandlers:
    """The API's description, the boot, and changes of the box as a whole."""

    def __init__(self, paths: Paths, drain: Drain, applier: ManifestApplier) -> None:
        self._paths, self._drain, self._applier = paths, drain, applier

    async def openapi(self) -> Mapping[str, Any]:
        # As in `_boot`: it needs all records and their schemas.
        from agentbox.api.openapi import document

        return document()

    async def boot(self, boot_id: str | None) -> Mapping[str, Any]:
        """Record, phases, events and sentinel of this boot; parts not written yet are null or
        empty.
        """
        return await asyncio.to_thread(_boot, self._paths, boot_id or "")

    async def drain(self) -> Draining:
        """Returns immediately; `/ready` reports `draining`."""
        self._drain.begin("requested")
        return Draining(state=self._drain.state)

    async def apply(self) -> Applied:
        return await self._applier.apply()


def _boot(paths: Paths, boot_id: str) -> dict[str, Any]:
    # Its records take some milliseconds to define: few readers pay for them, not each start.
    from agentbox.box.supervision.boot_timeline import boot_report

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
