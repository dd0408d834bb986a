"""The options of each implementation of a slot: the keys of `[adapters.<slot>]` that it reads, with
their defaults. A program of a box imports these without the tables.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from agentbox.manifest.declarations.constraints import Pattern, Range, Unique
from agentbox.manifest.declarations.key import key
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.types import BoxPath, Env, HttpUrl, Name, Size

_SchemaName = Annotated[str, Pattern("^[a-z_][a-z0-9_]{0,62}$")]


class EndpointOptions(Options):
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


class CallTimeout(Options):
    """A program or service that may not answer."""

    timeout_seconds: Annotated[int, Range(1, 120)] = key(
        10, "boot", doc="One call; connecting uses `mesh.connect_timeout_seconds`."
    )


class TlsOptions(Options):
    """A service over TLS."""

    ca_file: BoxPath = key("", "boot", doc="Extra trust anchor.")


class PostgresOptions(Options):
    """A PostgreSQL database."""

    dsn_env: Env = key("", "recreate", doc="Variable that holds the PostgreSQL connection string.")
    dsn_file: BoxPath = key("", "boot", doc="File that holds the PostgreSQL connection string.")
    schema: _SchemaName = key("agentbox", "boot", doc="Database schema.")
    pool_size: Annotated[int, Range(1, 64)] = key(8, "boot", doc="Connections to the database.")


class HttpOptions(TlsOptions, CallTimeout, EndpointOptions):
    """Options of a slot served over HTTP."""


class LeaseOptions(Options):
    """Options of beads in SQLite."""

    lease_seconds: Annotated[int, Range(5, 3600)] = key(
        60, "live", doc="Lease of a claim that names none of its own."
    )


class PostgresBeadsOptions(PostgresOptions, LeaseOptions, TlsOptions, CallTimeout):
    """Options of beads in PostgreSQL."""

    schema: _SchemaName = key("agentbox_beads", "boot", doc="Database schema.")


class ObjectLimit(Options):
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


class MemoryOptions(Options):
    """Options of memory in SQLite."""

    embedder: Name = key(
        "static-256", "boot", doc="Fixes the vector length; a store made with another is refused."
    )
    namespace_size: Size = key(Size("256MiB"), "live", doc="Quota of one namespace.")
    namespace_entries: Annotated[int, Range(100, 10000000)] = key(
        50000, "live", doc="Entries of one namespace."
    )


class PostgresMemoryOptions(PostgresOptions, MemoryOptions, TlsOptions, CallTimeout):
    """Options of memory in PostgreSQL."""

    schema: _SchemaName = key("agentbox_memory", "boot", doc="Database schema.")


class JournalOptions(Options):
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


class ProcessOptions(Options):
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


IMPLEMENTATIONS: Final[Mapping[str, Mapping[str, type[Options]]]] = {
    "beads": {
        "local-sqlite": LeaseOptions,
        "external-http": HttpOptions,
        "external-pg": PostgresBeadsOptions,
    },
    "pods": {"local-fs": LocalPodsOptions, "external-solid": SolidPodsOptions},
    "memory": {"local-sqlite": MemoryOptions, "external-pg": PostgresMemoryOptions},
    "events": {"local-jsonl": JournalOptions, "external-http": HttpEventsOptions},
    "orchestrator": {"local-process": ProcessOptions, "external-stdio": BridgeOptions},
}
"""The options class of each implementation, by slot; `off` has none."""


def options_class(slot: str, use: str) -> type[Options]:
    """Of an implementation; without keys for `off`."""
    return IMPLEMENTATIONS[slot].get(use, Options)
