"""[adapters.<slot>]: the implementation of each of the five slots, and its options. Each
implementation has one options class; the table of a slot is their union, and a key is used while
`use` names an implementation whose class has it. Only the five tables are dataclasses: creating one
for each options class would slow every start.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform

from agentbox.manifest.declarations.constraints import Pattern, Range, Unique
from agentbox.manifest.declarations.key import key, table
from agentbox.manifest.types import BoxPath, Env, HttpUrl, Name, Size

_SchemaName = Annotated[str, Pattern("^[a-z_][a-z0-9_]{0,62}$")]


_USE = "The implementation that serves the slot."
_REQUIRED = (
    "Down = /ready answers 503; else the slot is served by `off` and retried. "
    '`use = "off"` implies false.'
)
_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(key,))
def slot_table(kind: type[_T]) -> type[_T]:
    """A frozen dataclass with the keys of all bases, those of the last base first."""
    hints = {name: hint for base in reversed(kind.__mro__) for name, hint in _keys(base)}
    for name in hints:
        setattr(kind, name, getattr(kind, name))
    kind.__annotations__ = hints
    return dataclass(frozen=True, kw_only=True)(kind)


@cache
def options_of(slot: str, use: str) -> tuple[str, ...]:
    """The keys that an implementation of a slot reads; none while it is off."""
    options = getattr(AdaptersTable(), slot).options
    return option_names(options[use]) if use in options else ()


@cache
def default_option(slot: str, name: str) -> Any:
    """The default of a key of `[adapters.<slot>]`; a size in bytes."""
    value = getattr(getattr(AdaptersTable(), slot), name)
    return value.bytes if isinstance(value, Size) else value


def option_names(options: type) -> tuple[str, ...]:
    """The keys that an options class has."""
    return tuple(name for base in reversed(options.__mro__) for name, _ in _keys(base))


def _keys(kind: type) -> Iterator[tuple[str, Any]]:
    """The keys that a class itself declares."""
    for name, hint in get_annotations(kind).items():
        if name != "options":
            yield name, hint


class SlotTable:
    """A slot. `options`: the options class of each implementation; `off` has none."""

    options: ClassVar[Mapping[str, type]] = {}

    use: str = key("off", "boot", doc=_USE)
    required: bool = key(False, "boot", doc=_REQUIRED)


class Endpoint:
    """A service under a URL."""

    endpoint: HttpUrl = key(
        "", "boot", doc='URL of the service; "" = what the mesh session offers.'
    )
    token_env: Env = key(
        "",
        "recreate",
        doc='Variable that holds the bearer token; with `token_file` "" too: the mesh session\'s '
        'token while `endpoint` is "", else none is sent.',
    )
    token_file: BoxPath = key("", "boot", doc="File that holds the bearer token.")


class CallTimeout:
    """A program or service that may not answer."""

    timeout_seconds: Annotated[int, Range(1, 120)] = key(
        10, "boot", doc="One call; connecting uses `mesh.connect_timeout_seconds`."
    )


class TrustAnchor:
    """A service over TLS."""

    ca_file: BoxPath = key("", "boot", doc="Extra trust anchor.")


class Database:
    """A PostgreSQL database."""

    dsn_env: Env = key("", "recreate", doc="Variable that holds the PostgreSQL connection string.")
    dsn_file: BoxPath = key("", "boot", doc="File that holds the PostgreSQL connection string.")
    schema: _SchemaName = key("agentbox", "boot", doc="Database schema.")
    pool_size: Annotated[int, Range(1, 64)] = key(8, "boot", doc="Connections to the database.")


class HttpOptions(TrustAnchor, CallTimeout, Endpoint):
    """Options of a slot served over HTTP."""


class TargetKeys(CallTimeout, Endpoint, SlotTable):
    """The keys in all five tables. Rules explain where a target does not apply."""


class LeaseOptions:
    """Options of beads in SQLite."""

    lease_seconds: Annotated[int, Range(5, 3600)] = key(
        60, "live", doc="Lease of a claim that names none of its own."
    )


class PostgresBeadsOptions(Database, LeaseOptions, TrustAnchor, CallTimeout):
    """Options of beads in PostgreSQL."""

    schema: _SchemaName = key("agentbox_beads", "boot", doc="Database schema.")


@slot_table
class BeadsTable(PostgresBeadsOptions, LeaseOptions, HttpOptions, TargetKeys):
    """Work: tasks, receipts, dependencies, claims."""

    options: ClassVar = {
        "local-sqlite": LeaseOptions,
        "external-http": HttpOptions,
        "external-pg": PostgresBeadsOptions,
    }

    use: Literal["local-sqlite", "external-http", "external-pg", "off"] = key(
        "local-sqlite", "boot", doc=_USE
    )


class ObjectLimit:
    """A limit that every store of pods enforces."""

    max_object: Size = key(Size("64MiB"), "live", doc="One object.")


class LocalPodsOptions(ObjectLimit):
    """Options of pods in a directory."""

    quota: Size = key(Size("10GiB"), "live", doc="All objects together.")
    quota_objects: Annotated[int, Range(1000, 100000000)] = key(
        1000000, "live", doc="Number of objects."
    )


class SolidPodsOptions(ObjectLimit, HttpOptions):
    """Options of pods on a Solid server."""

    auth: Literal["none", "bearer", "solid-oidc", "nip98"] = key(
        "bearer", "boot", doc="How to log in."
    )


@slot_table
class PodsTable(LocalPodsOptions, SolidPodsOptions, TargetKeys):
    """Files with an address."""

    options: ClassVar = {"local-fs": LocalPodsOptions, "external-solid": SolidPodsOptions}

    use: Literal["local-fs", "external-solid", "off"] = key("local-fs", "boot", doc=_USE)


class MemoryOptions:
    """Options of memory in SQLite."""

    embedder: Name = key(
        "static-256", "boot", doc="Fixes the vector length; a store made with another is refused."
    )
    namespace_size: Size = key(Size("256MiB"), "live", doc="Quota of one namespace.")
    namespace_entries: Annotated[int, Range(100, 10000000)] = key(
        50000, "live", doc="Entries of one namespace."
    )


class PostgresMemoryOptions(Database, MemoryOptions, TrustAnchor, CallTimeout):
    """Options of memory in PostgreSQL."""

    schema: _SchemaName = key("agentbox_memory", "boot", doc="Database schema.")


@slot_table
class MemoryTable(PostgresMemoryOptions, MemoryOptions, TargetKeys):
    """What agents remember."""

    options: ClassVar = {"local-sqlite": MemoryOptions, "external-pg": PostgresMemoryOptions}

    use: Literal["local-sqlite", "external-pg", "off"] = key("local-sqlite", "boot", doc=_USE)


class JournalOptions:
    """Options of the local journal."""

    segment_size: Size = key(Size("256MiB"), "boot", doc="One file of the journal.")
    max_size: Size = key(
        Size("4GiB"),
        "live",
        doc="The whole journal: at this size appends fail, nothing is dropped.",
    )
    fsync: Literal["group", "always", "interval"] = key(
        "group",
        "boot",
        doc="group = one sync for the appends that wait; always = one each; interval = once a "
        "second, not durable.",
    )


class HttpEventsOptions(JournalOptions, HttpOptions):
    """Options of events sent over HTTP."""

    tee_local: bool = key(
        True, "boot", doc="Also keep the local journal, which then serves `read`."
    )


@slot_table
class EventsTable(HttpEventsOptions, JournalOptions, TargetKeys):
    """The journal."""

    options: ClassVar = {"local-jsonl": JournalOptions, "external-http": HttpEventsOptions}

    use: Literal["local-jsonl", "external-http", "off"] = key("local-jsonl", "boot", doc=_USE)


class ProcessOptions:
    """Options of agents as processes of the box."""

    max_agents: Annotated[int, Range(1, 1000)] = key(100, "live", doc="Live agents.")
    max_depth: Annotated[int, Range(1, 10)] = key(5, "live", doc="Depth of spawning.")
    grace_seconds: Annotated[int, Range(1, 60)] = key(
        5, "live", doc="From TERM to KILL of an agent."
    )


class BridgeOptions(CallTimeout):
    """Options of an orchestrator behind a bridge program."""

    command: tuple[str, ...] = key(
        (),
        "boot",
        doc="Bridge program whose stdin and stdout carry the contract; agentbox.agents.bridge "
        "ships, for agents of its own or with --url of another box.",
    )
    env: Annotated[tuple[Env, ...], Unique()] = key(
        (), "recreate", doc="Secrets of the box passed to the bridge as variables."
    )
    cwd: BoxPath = key("", "boot", doc='Folder the bridge runs in; "" = /var/lib/agentbox.')


@slot_table
class OrchestratorTable(BridgeOptions, ProcessOptions, TargetKeys):
    """What starts agents."""

    options: ClassVar = {"local-process": ProcessOptions, "external-stdio": BridgeOptions}

    use: Literal["local-process", "external-stdio", "off"] = key("local-process", "boot", doc=_USE)
    required: bool = key(True, "boot", doc=_REQUIRED)


@dataclass(frozen=True, kw_only=True)
class AdaptersTable:
    """Which implementation serves each of the five slots. Local ones keep their data in
    /var/lib/agentbox/<slot>/.
    """

    beads: BeadsTable = table(BeadsTable)
    pods: PodsTable = table(PodsTable)
    memory: MemoryTable = table(MemoryTable)
    events: EventsTable = table(EventsTable)
    orchestrator: OrchestratorTable = table(OrchestratorTable)


SLOTS = ("beads", "pods", "memory", "events", "orchestrator")
