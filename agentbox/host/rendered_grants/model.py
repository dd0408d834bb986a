"""What a box is granted, as one set that every target's text can be read back to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agentbox.core.errors import AgentboxError

LIMITS = ("memory", "swap", "cpus", "pids", "nofile", "core", "shm", "restarts")
"""Bytes, bytes with memory, cores, processes, files, bytes, bytes, times."""

UNBOUNDED = float("inf")


class UnknownGrantError(AgentboxError):
    """A text holds a word that its reader does not know, hence may grant anything."""


@dataclass(frozen=True, kw_only=True)
class GrantedMount:
    """One mount. `source` is `volume:<name>`, `host:<path>`, `secret:<name>`, `tmpfs`, or `manifest`; `size` in bytes, of
    a tmpfs only."""

    target: str
    source: str
    flags: frozenset[str] = frozenset()  # of write, exec, suid, dev
    size: float = UNBOUNDED


@dataclass(frozen=True, kw_only=True)
class Grants:
    """Every field is ordered: more of it is a wider grant."""

    user: str  # "uid:gid"; any other than the plan's is an excess
    capabilities: frozenset[str]  # DEFAULT = the engine's own list was not dropped
    escalation: bool
    privileged: bool
    root_writable: bool
    seccomp: str  # digest of the file, "" = unconfined or the engine's own
    mounts: tuple[GrantedMount, ...]
    devices: frozenset[str]
    groups: frozenset[str]
    ports: frozenset[tuple[str, int]]  # (who may come, port)
    environment: frozenset[str]
    secrets: frozenset[str]
    host_namespaces: frozenset[str]
    shared_network: bool  # with containers that are not this box's
    runtime: str = ""
    requests: Mapping[str, float] = field(default_factory=dict)  # devices asked of a driver
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ExcessGrant:
    """Something that is granted beyond what was allowed. `kind` is a dotted word, `detail` says what."""

    kind: str
    detail: str


def require_known(subject: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    """Raises UnknownGrantError when `found` holds a word that is not in `known`."""
    unknown = sorted(set(names) - set(allowed))
    if unknown:
        raise UnknownGrantError(
            f"cannot read the grants of {subject}: it does not know {unknown[0]}",
            "teach it the word",
        )
