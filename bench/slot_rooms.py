"""A slot of each class with what it needs behind it, through the whole pipeline, on a real disk: redacted and journalled as in a box."""

import contextlib
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/tools"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

from postgres_server import PostgresServer, running
from solid_server import SolidServer
from support import tables
from support.agent_host import AgentHostBox
from support.api_box import SLOTS as LOCAL
from support.api_box import TOKEN, ApiBox
from support.bridge_box import bridge

from agentbox.adapters.runtime.adapter import SLOTS, Deps, SlotConfig, SlotName
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.adapters.runtime.slots import Slots
from agentbox.core.logging import configure
from agentbox.core.paths import Paths
from agentbox.core.records.plain import to_plain
from agentbox.manifest.slot_options import options_class
from agentbox.policy.redaction.redactor import build_redactor

PRIVACY = {
    "enabled": True, "mode": "rules", "entities": ["secret"],
    "policy": {"beads": "soft", "events": "soft", "pods": "strict", "memory": "strict", "orchestrator": "off"},
}  # fmt: skip
ROOMY = {"namespace_entries": 1_000_000, "namespace_size": 8 << 30}
OPTIONS: Mapping[SlotName, Mapping[str, Any]] = {
    "beads": {"lease_seconds": 300}, "memory": ROOMY, "events": {"fsync": "group"}, "orchestrator": {"grace_seconds": 1, "max_agents": 1000},
}  # fmt: skip


@dataclass
class Room:
    """An open slot, and the servers that stand behind it."""

    slot: SlotName
    use: str
    prefix: Path
    box: Slots = field(init=False)
    options: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    server: PostgresServer | None = None
    solid: SolidServer | None = None

    @property
    def name(self) -> str:
        return f"{self.slot} {self.use}"

    def _options(self, name: SlotName, use: str) -> dict[str, Any]:
        """Those of all rooms that the implementation has, and those of this one."""
        given = {**OPTIONS.get(name, {}), **(self.options if name == self.slot else {})}
        return {key: given[key] for key in options_class(name, use).names() if key in given}

    def container(self) -> Slots:
        """The slot, and the journal of the box."""
        configure("bench", "error")
        uses = dict.fromkeys(SLOTS, "off") | {"events": "local-jsonl"} | {self.slot: self.use}
        configs = {
            name: SlotConfig(
                slot=name, use=uses[name], required=False, paths=Paths(self.prefix), box="bench", limits=to_plain(tables.limits()),
                options=options_class(name, uses[name])(**self._options(name, uses[name])),
                secrets=self.secrets if name == self.slot else {},
            )
            for name in SLOTS
        }  # fmt: skip
        return Slots(configs, Deps(metrics=Metrics()), build_redactor(tables.privacy(**PRIVACY)))


@contextlib.contextmanager
def solid() -> Iterator[SolidServer]:
    """A Community Solid Server without a relay before it."""
    server = SolidServer(relayed=False)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextlib.asynccontextmanager
async def room(slot: SlotName, use: str, prefix: Path) -> AsyncIterator[Room]:
    """The slot is open in the block. Raises RuntimeError when it does not open."""
    with contextlib.ExitStack() as stack:
        found = Room(slot, use, prefix)
        _behind(found, stack)
        found.box = found.container()
        await found.box.start()
        try:
            status = found.box.status()[slot]
            if status.state not in ("ok", "degraded"):
                raise RuntimeError(f"{found.name} does not open: {status.detail}")
            yield found
        finally:
            await found.box.stop()


def _behind(found: Room, stack: contextlib.ExitStack) -> None:
    """Starts what the class talks to."""
    if found.use == "external-pg":
        found.server = stack.enter_context(running())
        found.secrets["dsn"] = found.server.dsn()
    elif found.use == "external-solid":
        found.solid = stack.enter_context(solid())
        found.options |= {
            "endpoint": f"{found.solid.url}/box",
            "auth": "none",
            "max_object": 64 << 20,
        }
    elif found.use == "external-http":
        served = {
            name: LOCAL[name] if name == found.slot else LOCAL["events"]
            for name in (found.slot, "events")
        }
        off = {name: type(LOCAL["events"])(use="off", required=False) for name in SLOTS}
        peer = stack.enter_context(
            ApiBox(found.prefix / "peer", orchestrator=False, slots={**off, **served})
        )
        found.options["endpoint"] = peer.url + ("/v1/events" if found.slot == "events" else "")
        found.secrets["token"] = TOKEN
    elif found.slot == "orchestrator":
        host = AgentHostBox(found.prefix, options=OPTIONS["orchestrator"])
        if found.use == "external-stdio":
            found.options["command"] = bridge()
        else:
            host.start()
            stack.callback(host.stop)
