"""The grants of a box in a form that every target can be parsed into."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentbox.core.errors import AgentboxError

LIMITS = ("memory", "swap", "cpus", "pids", "nofile", "core", "shm", "restarts")
"""Bytes, bytes with memory, cores, processes, files, bytes, bytes, times."""

UNBOUNDED = float("inf")


class UnknownGrantError(AgentboxError):
    """A file contains a word that its reader does not know and that could grant anything."""


@dataclass(frozen=True, kw_only=True)
class GrantedMount:
    """A mount. `source` is `volume:<name>`, `host:<path>`, `secret:<name>`, `tmpfs`, or `manifest`;
    `size` in bytes, of a tmpfs only.
    """

    target: str
    source: str
    flags: frozenset[str] = frozenset()  # of write, exec, suid, dev
    size: float = UNBOUNDED


@dataclass(frozen=True, kw_only=True)
class Grants:
    """All fields are ordered: more is a wider grant."""

    user: str  # "uid:gid"; any other than the plan's is an excess
    capabilities: frozenset[str]  # DEFAULT = the engine's own list was not dropped
    escalation: bool
    privileged: bool
    root_writable: bool
    seccomp: str  # digest of the file, "" = unconfined or the engine's default
    mounts: tuple[GrantedMount, ...]
    devices: frozenset[str]
    groups: frozenset[str]
    ports: frozenset[tuple[str, int]]  # (who may connect, port)
    environment: frozenset[str]
    secrets: frozenset[str]
    host_namespaces: frozenset[str]
    shared_network: bool  # with containers of others
    runtime: str = ""
    requests: Mapping[str, float] = field(default_factory=dict)  # devices requested from a driver
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ExcessGrant:
    """A grant beyond what is allowed. `kind` is a dotted word, `detail` the value."""

    kind: str
    detail: str


def require_known(subject: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raises UnknownGrantError if `names` has a word that is not in `allowed`."""
    unknown = sorted(set(names) - set(allowed))
    if unknown:
        raise UnknownGrantError(
            f"cannot read the grants of {subject}: unknown word {unknown[0]}",
            "Add it to the reader.",
        )
