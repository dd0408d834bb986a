"""Who writes to beads, events, memory and pods while programs are killed, and whether all that was acknowledged is there after."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

from chaos import BEADS, MEMORY, PODS
from chaos import Load as Kind
from ten_load import GONE
from test_supervised import TOKEN, Sealed

from agentbox.client import AsyncBoxClient

_SLOW, _FAST = 0.5, 0.0  # seconds between two writes of a writer: always, and around a kill
_REFUSED = 0.05
_TYPE = "bench.written"


async def _write_event(client: AsyncBoxClient, name: str) -> None:
    await client.call(
        "append_events", body={"events": [{"type": _TYPE, "subject": name, "data": {}}]}
    )


async def _events(client: AsyncBoxClient) -> set[str]:
    found, since = set(), -1
    while batch := (
        await client.call("read_events", query={"since": since, "types": _TYPE, "limit": 1000})
    )["events"]:
        found |= {one["subject"] for one in batch}
        since = batch[-1]["seq"]
    return found


SLOTS = (BEADS, MEMORY, PODS, Kind("events", _write_event, _events))


@dataclass
class Written:
    """Of one slot: names of the writes."""

    acknowledged: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> dict[str, object]:
        return {
            "acknowledged": len(self.acknowledged), "lost": len(self.acknowledged - self.found), "refused": dict(self.refused),
            "written_but_not_acknowledged": len(self.found - self.acknowledged),
        }  # fmt: skip


class Writers:
    """One a slot, until it is left; then everything is read back. `hurry`: each writes without a pause."""

    def __init__(self, box: Sealed) -> None:
        self.by_slot = {kind.slot: Written() for kind in SLOTS}
        self.hurry = False
        self.broken = ""  # what the journal's own check says
        self._url = f"http://127.0.0.1:{box.plan.api.port}"
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Writers:
        self._tasks = [asyncio.create_task(self._write(kind)) for kind in SLOTS]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopped = True
        await asyncio.gather(*self._tasks)
        async with AsyncBoxClient(self._url, token=TOKEN, timeout=60) as client:
            for kind in SLOTS:
                self.by_slot[kind.slot].found = await kind.names(client)
            checked = await client.call("verify_events", body={})
        self.broken = "" if checked["ok"] else str(checked)

    async def _write(self, kind: Kind) -> None:
        """A name is used once, so that what was refused and yet done is seen."""
        mine = self.by_slot[kind.slot]
        async with AsyncBoxClient(self._url, token=TOKEN, timeout=20) as client:
            while not self._stopped:
                name = uuid.uuid4().hex
                try:
                    await kind.write(client, name)
                except GONE as error:
                    mine.refused[getattr(error, "code", "") or type(error).__name__] += 1
                    await asyncio.sleep(_REFUSED)
                else:
                    mine.acknowledged.add(name)
                    await asyncio.sleep(_FAST if self.hurry else _SLOW)

    def wrong(self) -> list[str]:
        """A sentence for each write that was acknowledged and is not there."""
        said = [f"the journal does not hold: {self.broken}"] if self.broken else []
        for slot, one in self.by_slot.items():
            if lost := len(one.acknowledged - one.found):
                said.append(
                    f"{lost} of {len(one.acknowledged)} acknowledged writes to {slot} are lost"
                )
            if not one.acknowledged:
                said.append(f"no write to {slot} was acknowledged")
        return said
