"""[adapters.<slot>]: the implementation of each of the five slots, and its settings."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from agentbox.manifest.types import (
    BoxPath,
    Env,
    HttpUrl,
    Name,
    Range,
    Size,
    TextPattern,
    Unique,
    key,
)

_SchemaName = Annotated[str, TextPattern("^[a-z_][a-z0-9_]{0,62}$")]
_PoolSize = Annotated[int, Range(1, 64)]


@dataclass(frozen=True, kw_only=True)
class SlotTable:
    """Keys of all slot tables. The target keys are in all five, so that rules can explain where
    they do not apply.
    """

    required: bool = key(False, "boot")
    endpoint: HttpUrl = key("", "boot")
    token_env: Env = key("", "recreate")
    token_file: BoxPath = key("", "boot")
    timeout_seconds: Annotated[int, Range(1, 120)] = key(10, "boot")


@dataclass(frozen=True, kw_only=True)
class BeadsTable(SlotTable):
    """[adapters.beads]: work items."""

    use: Literal["local-sqlite", "external-http", "external-pg", "off"] = key(
        "local-sqlite", "boot"
    )
    ca_file: BoxPath = key("", "boot")
    lease_seconds: Annotated[int, Range(5, 3600)] = key(60, "live")
    dsn_env: Env = key("", "recreate")
    dsn_file: BoxPath = key("", "boot")
    schema: _SchemaName = key("agentbox_beads", "boot")
    pool_size: _PoolSize = key(8, "boot")


@dataclass(frozen=True, kw_only=True)
class PodsTable(SlotTable):
    """[adapters.pods]: addressable files."""

    use: Literal["local-fs", "external-solid", "off"] = key("local-fs", "boot")
    auth: Literal["none", "bearer", "solid-oidc", "nip98"] = key("bearer", "boot")
    ca_file: BoxPath = key("", "boot")
    quota: Size = key(Size("10GiB"), "live")
    max_object: Size = key(Size("64MiB"), "live")
    quota_objects: Annotated[int, Range(1000, 100000000)] = key(1000000, "live")


@dataclass(frozen=True, kw_only=True)
class MemoryTable(SlotTable):
    """[adapters.memory]: searchable memory of agents."""

    use: Literal["local-sqlite", "external-pg", "off"] = key("local-sqlite", "boot")
    ca_file: BoxPath = key("", "boot")
    embedder: Name = key("static-256", "boot")
    namespace_size: Size = key(Size("256MiB"), "live")
    namespace_entries: Annotated[int, Range(100, 10000000)] = key(50000, "live")
    dsn_env: Env = key("", "recreate")
    dsn_file: BoxPath = key("", "boot")
    schema: _SchemaName = key("agentbox_memory", "boot")
    pool_size: _PoolSize = key(8, "boot")


@dataclass(frozen=True, kw_only=True)
class EventsTable(SlotTable):
    """[adapters.events]: the event journal."""

    use: Literal["local-jsonl", "external-http", "off"] = key("local-jsonl", "boot")
    ca_file: BoxPath = key("", "boot")
    segment_size: Size = key(Size("256MiB"), "boot")
    max_size: Size = key(Size("4GiB"), "live")
    fsync: Literal["group", "always", "interval"] = key("group", "boot")
    tee_local: bool = key(True, "boot")


@dataclass(frozen=True, kw_only=True)
class OrchestratorTable(SlotTable):
    """[adapters.orchestrator]: starts agents. `use = "off"` implies `required = false`."""

    use: Literal["local-process", "external-stdio", "off"] = key("local-process", "boot")
    required: bool = key(True, "boot")
    max_agents: Annotated[int, Range(1, 1000)] = key(100, "live")
    max_depth: Annotated[int, Range(1, 10)] = key(5, "live")
    grace_seconds: Annotated[int, Range(1, 60)] = key(5, "live")
    command: tuple[str, ...] = key((), "boot")
    env: Annotated[tuple[Env, ...], Unique()] = key((), "recreate")
    cwd: BoxPath = key("", "boot")


@dataclass(frozen=True, kw_only=True)
class AdaptersTable:
    """The five slots."""

    beads: BeadsTable = field(default_factory=BeadsTable)
    pods: PodsTable = field(default_factory=PodsTable)
    memory: MemoryTable = field(default_factory=MemoryTable)
    events: EventsTable = field(default_factory=EventsTable)
    orchestrator: OrchestratorTable = field(default_factory=OrchestratorTable)


SLOTS = ("beads", "pods", "memory", "events", "orchestrator")
