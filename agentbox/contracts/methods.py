"""One row per method of each slot, for the dispatch pipeline. Text fields and identifiers are JSON
pointers into the named arguments; `*` is every item of an array, `/**` every string below,
including object keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentbox.adapters.runtime.adapter import SlotName
from agentbox.contracts.beads import Beads
from agentbox.contracts.events import Events
from agentbox.contracts.memory import Memory
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.contracts.pods import Pods

_SPEC = ("/spec/title", "/spec/body", "/spec/tags/**", "/spec/data/**")
_LABELS = ("/spec/labels/**",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSpec:
    """`deadline_s` is the method's own limit; `deadline_plus` names an argument whose value is
    added, and the slot option used if the argument is None. `intent` is the type of the event
    written before the effect.
    """

    name: str
    kind: Literal["read", "write"]
    scope: str
    deadline_s: float
    idempotent: bool = False
    deadline_plus: tuple[str, str] | None = None
    text_fields: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    intent: str = ""
    journal: bool = False
    stream: bool = False


def _bead_write(
    name: str,
    *,
    text: tuple[str, ...] = (),
    identifiers: tuple[str, ...] = (),
    idempotent: bool = False,
    journal: bool = True,
) -> MethodSpec:
    return MethodSpec(
        name=name,
        kind="write",
        scope="beads:write",
        deadline_s=5,
        idempotent=idempotent,
        text_fields=text,
        identifiers=identifiers,
        journal=journal,
    )


def _read(
    slot: SlotName,
    name: str,
    *,
    deadline_s: float = 5,
    text: tuple[str, ...] = (),
    stream: bool = False,
) -> MethodSpec:
    return MethodSpec(
        name=name,
        kind="read",
        scope=f"{slot}:read",
        deadline_s=deadline_s,
        idempotent=True,
        text_fields=text,
        stream=stream,
    )


BEADS = (
    _bead_write("create_epic", text=_SPEC, identifiers=("/spec/dedup_key",)),
    _bead_write("create_child", text=_SPEC, identifiers=("/spec/dedup_key",)),
    _bead_write("add_dep", idempotent=True),
    _bead_write("remove_dep", idempotent=True),
    _bead_write("claim", idempotent=True),
    _bead_write("claim_next", idempotent=True),
    _bead_write("heartbeat", idempotent=True, journal=False),
    _bead_write("release", text=("/note",)),
    _bead_write("close_bead", text=("/note", "/result/**"), idempotent=True),
    _read("beads", "ready"),
    _read("beads", "show"),
    _read("beads", "list"),
)
PODS = (
    MethodSpec(
        name="write",
        kind="write",
        scope="pods:write",
        deadline_s=30,
        text_fields=("/body",),
        identifiers=("/path", "/content_type"),
        journal=True,
    ),
    _read("pods", "read", deadline_s=30),
    _read("pods", "head", deadline_s=30),
    MethodSpec(
        name="patch",
        kind="write",
        scope="pods:write",
        deadline_s=30,
        text_fields=("/patch/*/value/**",),
        identifiers=("/path", "/patch/*/path"),
        journal=True,
    ),
    MethodSpec(name="delete", kind="write", scope="pods:write", deadline_s=30, journal=True),
    _read("pods", "list", deadline_s=30),
)
MEMORY = (
    MethodSpec(
        name="store",
        kind="write",
        scope="memory:write",
        deadline_s=10,
        idempotent=True,
        text_fields=("/text", "/value/**", "/metadata/**"),
        identifiers=("/key",),
        journal=True,
    ),
    _read("memory", "retrieve", deadline_s=10),
    _read("memory", "search", deadline_s=10, text=("/query",)),
    MethodSpec(
        name="delete",
        kind="write",
        scope="memory:write",
        deadline_s=10,
        idempotent=True,
        journal=True,
    ),
    _read("memory", "list", deadline_s=10),
    _read("memory", "stats", deadline_s=10),
)
EVENTS = (
    MethodSpec(
        name="append",
        kind="write",
        scope="events:write",
        deadline_s=5,
        text_fields=("/events/*/subject", "/events/*/data/**"),
    ),
    _read("events", "read"),
    _read("events", "subscribe", stream=True),
    _read("events", "head"),
    MethodSpec(name="verify", kind="read", scope="admin", deadline_s=300, idempotent=True),
    MethodSpec(name="receive", kind="write", scope="events:write", deadline_s=5, idempotent=True),
    _read("events", "delivery"),
)
ORCHESTRATOR = (
    MethodSpec(
        name="spawn",
        kind="write",
        scope="agents:write",
        deadline_s=10,
        idempotent=True,
        text_fields=(*_LABELS, "/stdin"),
        intent="agent.spawn.requested",
    ),
    _read("orchestrator", "list"),
    _read("orchestrator", "get"),
    MethodSpec(name="signal", kind="write", scope="agents:write", deadline_s=5),
    MethodSpec(name="revoke", kind="write", scope="agents:write", deadline_s=5, idempotent=True),
    MethodSpec(
        name="terminate",
        kind="write",
        scope="agents:write",
        deadline_s=5,
        idempotent=True,
        deadline_plus=("grace_s", "grace_seconds"),
        intent="agent.terminate.requested",
    ),
    _read("orchestrator", "stream", stream=True),
    MethodSpec(name="attach", kind="write", scope="agents:write", deadline_s=5),
    MethodSpec(
        name="run_once",
        kind="write",
        scope="agents:write",
        deadline_s=5,
        deadline_plus=("timeout_s", ""),
        text_fields=(*_LABELS, "/stdin"),
        intent="agent.spawn.requested",
    ),
)

METHODS: Mapping[SlotName, tuple[MethodSpec, ...]] = {
    "beads": BEADS,
    "pods": PODS,
    "memory": MEMORY,
    "events": EVENTS,
    "orchestrator": ORCHESTRATOR,
}
CONTRACTS: Mapping[SlotName, type] = {
    "beads": Beads,
    "pods": Pods,
    "memory": Memory,
    "events": Events,
    "orchestrator": Orchestrator,
}
