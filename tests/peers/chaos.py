"""A box under load whose peer is killed and started again: acknowledged writes, the output of
`/ready`, and when. The box is the real API in a process of its own; so is the peer. Each writer
gives every write a name of its own, and counts it only when the box has acknowledged it."""

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from postgres_server import PostgresServer
from support.api_box import SLOTS as LOCAL
from support.api_box import TOKEN, ApiBox

from agentbox.adapters.runtime.adapter import SLOTS
from agentbox.client import AsyncBoxClient, every_async
from agentbox.client.errors import ApiError
from agentbox.plan.model import SlotPlan

WRITERS = 8
TRUTH_SECONDS = 5.0  # `/ready` flips within 5 s under traffic
_POLL_SECONDS = 0.02
_PAUSE_SECONDS = 0.05  # of a writer that was refused
_PATIENCE = 75.0  # the longest wait between two attempts to open a slot is 60 s


class Peer(Protocol):
    """Something behind a slot. Killed without warning; started on the same data and the same port."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


class Database:
    """A PostgreSQL that is ended as by a crash."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def kill(self) -> None:
        self._server.stop(at_once=True)

    def start(self) -> None:
        self._server.start()


@dataclass(frozen=True)
class Load:
    """One kind of write, and how to read all of them back. Both raise ApiError. `again`: a refused
    write is repeated under its name until it is acknowledged; else under another."""

    slot: str
    write: Callable[[AsyncBoxClient, str], Awaitable[Any]]
    names: Callable[[AsyncBoxClient], Awaitable[set[str]]]
    again: bool = False


@dataclass
class Outcome:
    """The result. Seconds: from the kill until `/ready` named the slot, from the peer's return to
    the first acknowledged write, and from then until `/ready` did not name it any more."""

    acknowledged: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    told: list[float] = field(default_factory=list)
    back: list[float] = field(default_factory=list)
    cleared: list[float] = field(default_factory=list)
    untyped: list[str] = field(default_factory=list)
    pid_changed: bool = False

    def wrong(self) -> list[str]:
        """A sentence for each promise that was broken."""
        said = []
        if lost := self.acknowledged - self.found:
            said.append(f"{len(lost)} acknowledged writes are lost")
        for what, seconds in (("said so", self.told), ("cleared it", self.cleared)):
            if late := [one for one in seconds if one > TRUTH_SECONDS]:
                said.append(f"/ready {what} after {max(late):.1f} s")
        if self.untyped:
            said.append(f"{len(self.untyped)} errors had no type: {self.untyped[0]}")
        if self.pid_changed:
            said.append("the API was restarted")
        return said


async def _write_bead(client: AsyncBoxClient, name: str) -> None:
    await client.call("create_epic", body={"title": name, "creator": "", "dedup_key": name})


async def _beads(client: AsyncBoxClient) -> set[str]:
    found, cursor = set(), None
    while True:
        page = await client.call("list_beads", query={"limit": 500, "cursor": cursor})
        found |= {bead["title"] for bead in page["items"]}
        if (cursor := page["next_cursor"]) is None:
            return found


async def _write_entry(client: AsyncBoxClient, name: str) -> None:
    await client.memory.store(name, f"what {name} was about")


async def _entries(client: AsyncBoxClient) -> set[str]:
    return {entry.key async for entry in every_async(client.memory.list, limit=500)}


async def _write_pod(client: AsyncBoxClient, name: str) -> None:
    await client.pods.write(f"chaos/{name}", name.encode())


async def _pods(client: AsyncBoxClient) -> set[str]:
    members = every_async(client.pods.list, "chaos/", limit=500)
    return {member.path.removeprefix("chaos/") async for member in members}


PODS = Load("pods", _write_pod, _pods)
BEADS = Load("beads", _write_bead, _beads)
MEMORY = Load("memory", _write_entry, _entries)


def box_with(prefix: Path, slot: str, use: str, secrets: dict[str, str], **options: Any) -> ApiBox:
    """A box with one external slot. `secrets` are its files, by the kind that the slot needs."""
    off = {name: SlotPlan(use="off", required=False) for name in SLOTS}
    named = {f"{kind}_file": f"/run/secrets/{kind}" for kind in secrets}
    box = ApiBox(
        prefix, orchestrator=False,
        slots={**off, "events": LOCAL["events"], slot: SlotPlan(use=use, required=False, options={**options, **named})},
    )  # fmt: skip
    for kind, value in secrets.items():
        file = box.paths.resolve(f"/run/secrets/{kind}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value)
    return box


def served_beads(prefix: Path) -> ApiBox:
    """A peer for beads over HTTP: another box."""
    off = {name: SlotPlan(use="off", required=False) for name in SLOTS}
    return ApiBox(prefix, orchestrator=False, slots={**off, "beads": LOCAL["beads"]})


def over_http(prefix: Path, peer: ApiBox) -> ApiBox:
    """A box whose beads are those of the peer."""
    return box_with(prefix, "beads", "external-http", {"token": TOKEN}, endpoint=peer.url)


async def harass(
    box: ApiBox,
    load: Load,
    peer: Peer,
    *,
    kills: int,
    up: float,
    down: float,
    writers: int = WRITERS,
) -> Outcome:
    """Writes all the time; kills the peer `kills` times, `up` seconds after it served again, for `down` seconds. `/ready` has to
    name a required slot in `missing`, another in `degraded`."""
    out, stopped = Outcome(), asyncio.Event()
    last_ack = 0.0
    crew: list[asyncio.Task[None]] = []
    assert box.process is not None
    pid, required = box.process.pid, box.plan.slots[load.slot].required

    async def writer(client: AsyncBoxClient) -> None:
        nonlocal last_ack
        name = uuid.uuid4().hex
        while not stopped.is_set():
            begun = time.monotonic()
            try:
                await load.write(client, name)
            except ApiError as error:
                out.refused[error.code] += 1
                if error.code in ("", "internal"):
                    out.untyped.append(f"{error.status} {error}")
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                out.acknowledged.add(name)
                last_ack = max(
                    last_ack, begun
                )  # what was under way at the return is no proof of it
            if name in out.acknowledged or not load.again:
                name = uuid.uuid4().hex

    async def until(condition: Callable[[], Awaitable[bool]]) -> float:
        begun = time.monotonic()
        while not await condition():
            for one in crew:
                if one.done():
                    one.result()  # a writer that failed for a reason of its own
            if time.monotonic() - begun > _PATIENCE:
                raise TimeoutError(f"{load.slot} did not come back: {out.refused}")
            await asyncio.sleep(_POLL_SECONDS)
        return time.monotonic() - begun

    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncBoxClient(box.url, token=TOKEN, timeout=30))
            for _ in range(2)
        ]
        watch, client = clients

        async def named() -> bool:
            said = await watch.ready()
            return (
                any(f"adapter:{load.slot} " in one for one in said.missing)
                if required
                else load.slot in said.degraded
            )

        async def cleared() -> bool:
            return not await named()

        async def acknowledged_since(moment: float) -> bool:
            return last_ack > moment

        crew += [asyncio.create_task(writer(client)) for _ in range(writers)]
        try:
            for _ in range(kills):
                await asyncio.sleep(up)
                await asyncio.to_thread(peer.kill)
                out.told.append(await until(named))
                await asyncio.sleep(down)
                await asyncio.to_thread(peer.start)
                moment = time.monotonic()
                out.back.append(await until(lambda moment=moment: acknowledged_since(moment)))
                out.cleared.append(await until(cleared))
        finally:
            stopped.set()
            await asyncio.gather(*crew)
        out.found = await load.names(watch)
    out.pid_changed = box.process.pid != pid or box.process.poll() is not None
    return out


async def survive_a_kill(box: ApiBox, load: Load, peer: Peer) -> Outcome:
    """One kill under four writers. Raises AssertionError where a promise was broken."""
    out = await harass(box, load, peer, kills=1, up=1.0, down=0.5, writers=4)
    assert out.wrong() == []
    assert out.acknowledged
    assert out.refused  # the peer was missed, and every refusal had a type
    return out
