"""The data of a state in the slots memory and pods: counted, removed, moved."""

import math
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentbox.contracts.states import State, StateHolds
from agentbox.core import clock
from agentbox.core.slot_errors import BackendError, NotFound

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Slots
    from agentbox.contracts.pods import PodMeta

LEGACY: Final = "legacy."
"""Prefix of agent names for data from before states existed."""
_PAGE: Final = 500
_Location = tuple[str, str]  # a namespace of memory, and a container of pods


def state_location(state_id: str) -> _Location:
    """The location of a state's data."""
    return f"state.{state_id}", f"state/{state_id}/"


def legacy_location(name: str) -> _Location:
    """The location of the data of `legacy.<agent>`."""
    agent = name.removeprefix(LEGACY)
    return f"agent.{agent}", f"agents/{agent}/"


async def count_contents(slots: "Slots", location: _Location) -> StateHolds:
    """The number of items there. A slot that is off has none."""
    namespace, root = location
    entries = pods = 0
    if not _is_off(slots, "memory"):
        entries = (await slots.memory.stats(namespace)).entries
    if not _is_off(slots, "pods"):
        async for meta in _walk(slots, root):
            pods += meta.kind == "object"
    return StateHolds(memory=entries, pods=pods)


async def clear(slots: "Slots", location: _Location) -> StateHolds:
    """Removes the data and returns the number of items. May be repeated after a crash. Raises
    AdapterError.
    """
    namespace, root = location
    entries = pods = 0
    while not _is_off(slots, "memory") and (
        batch := (await slots.memory.list(namespace=namespace, limit=_PAGE)).items
    ):
        deleted = [await slots.memory.delete(entry.key, namespace=namespace) for entry in batch]
        entries += sum(deleted)
        _check_progress("memory", namespace, any(deleted))
    if not _is_off(slots, "pods"):
        for meta in [meta async for meta in _walk(slots, root)][
            ::-1
        ]:  # children before their container
            with suppress(NotFound):
                await slots.pods.delete(meta.path)
                pods += meta.kind == "object"
        with suppress(NotFound):
            await slots.pods.delete(root)
    return StateHolds(memory=entries, pods=pods)


async def move(slots: "Slots", source: _Location, target: _Location) -> StateHolds:
    """Stores each item at the target before it removes the source: a crash loses none, and it may
    be repeated.
    """
    entries = pods = 0
    while not _is_off(slots, "memory") and (
        batch := (await slots.memory.list(namespace=source[0], limit=_PAGE)).items
    ):
        deleted = []
        for entry in batch:
            remaining = (
                None
                if entry.expires_at is None
                else (entry.expires_at - clock.now()).total_seconds()
            )
            await slots.memory.store(
                entry.key,
                entry.value,
                namespace=target[0],
                text=entry.text,
                metadata=entry.metadata,
                ttl_s=None if remaining is None else max(1, math.ceil(remaining)),
            )
            deleted.append(await slots.memory.delete(entry.key, namespace=source[0]))
        entries += len(deleted)
        _check_progress("memory", source[0], any(deleted))
    if not _is_off(slots, "pods"):
        for meta in [meta async for meta in _walk(slots, source[1])]:
            if meta.kind == "object":
                body = (await slots.pods.read(meta.path)).body
                path = target[1] + meta.path.removeprefix(source[1])
                await slots.pods.write(path, body, content_type=meta.content_type)
                pods += 1
        await clear(slots, source)
    return StateHolds(memory=entries, pods=pods)


async def legacy_names(slots: "Slots") -> list[str]:
    """The names `legacy.<agent>` with data, in order."""
    names: set[str] = set()
    if not _is_off(slots, "memory"):
        names |= {
            name.removeprefix("agent.")
            for name in (await slots.memory.stats()).namespaces
            if name.startswith("agent.")
        }
    if not _is_off(slots, "pods"):
        async for meta in _list_members(slots, "agents/"):
            names.add(meta.path.removeprefix("agents/").partition("/")[0])
    return [f"{LEGACY}{name}" for name in sorted(names)]


async def remove_detached(
    slots: "Slots", state: State, by: str, *, report_empty: bool
) -> StateHolds:
    """Removes the data of an unused state, then the state; recorded in the journal with counts."""
    removed = await clear(slots, state_location(state.state_id))
    if report_empty or removed.memory or removed.pods:
        data = {
            "state_id": state.state_id,
            "name": state.name,
            "label": state.label,
            "memory": removed.memory,
            "pods": removed.pods,
        }
        await slots.journal.record("state.removed", {**data, "by": by})
    await slots.agent_host.forget_state(state.state_id)
    return removed


async def _walk(slots: "Slots", root: str) -> AsyncIterator["PodMeta"]:
    """All members below a container, each container before its members."""
    async for meta in _list_members(slots, root):
        yield meta
        if meta.kind == "container":
            async for below in _walk(slots, meta.path):
                yield below


async def _list_members(slots: "Slots", path: str) -> AsyncIterator["PodMeta"]:
    cursor: str | None = None
    while True:
        try:
            page = await slots.pods.list(path, limit=_PAGE, cursor=cursor)
        except NotFound:
            return
        for meta in page.items:
            yield meta
        if (cursor := page.next_cursor) is None:
            return


def _is_off(slots: "Slots", slot: Any) -> bool:
    return slots.status()[slot].state == "off"


def _check_progress(slot: str, location: str, progressed: bool) -> None:
    if not progressed:
        raise BackendError(
            f"cannot empty {location}: the store still lists removed items", slot=slot, impl=""
        )
