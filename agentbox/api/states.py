"""What a state holds in the slots memory and pods: counted, removed, taken over."""

import math
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from agentbox.adapters.orchestrator.over_rpc import OverRpc
from agentbox.api.background.following import keeper
from agentbox.contracts.states import State, StateHolds
from agentbox.core import clock
from agentbox.core.slot_errors import BackendError, NotFound

if TYPE_CHECKING:
    from agentbox.adapters.runtime.slots import Container
    from agentbox.api.services import Services
    from agentbox.contracts.pods import PodMeta

LEGACY: Final = "legacy."
"""Before the name of an agent: what it left before states were a run's own."""
_PAGE: Final = 500
_Place = tuple[str, str]  # a namespace of memory, and a container of pods


def place_of(state_id: str) -> _Place:
    """Where a state's things lie."""
    return f"state.{state_id}", f"state/{state_id}/"


def legacy_place(name: str) -> _Place:
    """Where the things of `legacy.<agent>` lie."""
    agent = name.removeprefix(LEGACY)
    return f"agent.{agent}", f"agents/{agent}/"


async def ask(services: "Services", method: str, **params: Any) -> Any:
    """A method of agent-host, which knows the states. Raises SlotUnavailable where agents are not this box's own."""
    host: OverRpc = keeper(services)
    return await host.ask(method, params)


async def holds(container: "Container", place: _Place) -> StateHolds:
    """How much lies there. A slot that is off holds nothing."""
    namespace, top = place
    entries = pods = 0
    if not _off(container, "memory"):
        entries = (await container.memory.stats(namespace)).entries
    if not _off(container, "pods"):
        async for meta in _members(container, top):
            pods += meta.kind == "object"
    return StateHolds(memory=entries, pods=pods)


async def clear(container: "Container", place: _Place) -> StateHolds:
    """Removes it, and says how much that was. May be done again after a crash. Raises AdapterError."""
    namespace, top = place
    entries = pods = 0
    while not _off(container, "memory") and (
        found := (await container.memory.list(namespace=namespace, limit=_PAGE)).items
    ):
        gone = [await container.memory.delete(entry.key, namespace=namespace) for entry in found]
        entries += sum(gone)
        _check_progress("memory", namespace, any(gone))
    if not _off(container, "pods"):
        for meta in [meta async for meta in _members(container, top)][::-1]:  # what lies in a container before it
            with suppress(NotFound):
                await container.pods.delete(meta.path)
                pods += meta.kind == "object"
        with suppress(NotFound):
            await container.pods.delete(top)
    return StateHolds(memory=entries, pods=pods)


async def move(container: "Container", source: _Place, target: _Place) -> StateHolds:
    """Each thing is stored there before it goes here: a crash loses none, and it may be done again."""
    entries = pods = 0
    while not _off(container, "memory") and (
        found := (await container.memory.list(namespace=source[0], limit=_PAGE)).items
    ):
        gone = []
        for one in found:
            left = None if one.expires_at is None else (one.expires_at - clock.now()).total_seconds()
            await container.memory.store(
                one.key, one.value, namespace=target[0], text=one.text, metadata=one.metadata,
                ttl_s=None if left is None else max(1, math.ceil(left)),
            )  # fmt: skip
            gone.append(await container.memory.delete(one.key, namespace=source[0]))
        entries += len(gone)
        _check_progress("memory", source[0], any(gone))
    if not _off(container, "pods"):
        for meta in [meta async for meta in _members(container, source[1])]:
            if meta.kind == "object":
                body = (await container.pods.read(meta.path)).body
                path = target[1] + meta.path.removeprefix(source[1])
                await container.pods.write(path, body, content_type=meta.content_type)
                pods += 1
        await clear(container, source)
    return StateHolds(memory=entries, pods=pods)


async def legacy(container: "Container") -> list[str]:
    """The names `legacy.<agent>` that hold something, in order."""
    names: set[str] = set()
    if not _off(container, "memory"):
        names |= {
            name.removeprefix("agent.")
            for name in (await container.memory.stats()).namespaces
            if name.startswith("agent.")
        }
    if not _off(container, "pods"):
        async for meta in _listed(container, "agents/"):
            names.add(meta.path.removeprefix("agents/").partition("/")[0])
    return [f"{LEGACY}{name}" for name in sorted(names)]


async def remove_detached(services: "Services", state: State, by: str, *, tell_empty: bool) -> StateHolds:
    """The data of a state that nothing uses any more, then the state; journaled with counts."""
    gone = await clear(services.container, place_of(state.state_id))
    if tell_empty or gone.memory or gone.pods:
        told = {
            "state_id": state.state_id,
            "name": state.name,
            "label": state.label,
            "memory": gone.memory,
            "pods": gone.pods,
        }
        await services.container.journal.record("state.removed", {**told, "by": by})
    await ask(services, "state.forget", state_id=state.state_id)
    return gone


async def _members(container: "Container", top: str) -> AsyncIterator["PodMeta"]:
    """All below a container, each container before what is in it."""
    async for meta in _listed(container, top):
        yield meta
        if meta.kind == "container":
            async for below in _members(container, meta.path):
                yield below


async def _listed(container: "Container", path: str) -> AsyncIterator["PodMeta"]:
    cursor: str | None = None
    while True:
        try:
            page = await container.pods.list(path, limit=_PAGE, cursor=cursor)
        except NotFound:
            return
        for meta in page.items:
            yield meta
        if (cursor := page.next_cursor) is None:
            return


def _off(container: "Container", slot: Any) -> bool:
    return container.status()[slot].state == "off"


def _check_progress(slot: str, place: str, moved: bool) -> None:
    if not moved:
        raise BackendError(f"cannot empty {place}: the store lists what it does not remove", slot=slot, impl="")
