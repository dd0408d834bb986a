"""One optional capability, as defined by its file in `config/features/`. Standard library only."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from agentbox.core.frozen import frozen
from agentbox.manifest.types import ExceptionKey, Size


@frozen
class Gate:
    """The manifest key and the values that enable a feature; `when` names an additional switch that
    must be on. A key that is a map has the value true if it has an entry.
    """

    key: str
    values: tuple[bool | str, ...]
    when: str = ""


@frozen
class SecurityExceptionNeed:
    """The security exception of a feature; `need` is the severity of a missing block: required =
    E201, advised = W021.
    """

    key: ExceptionKey
    need: str


@frozen
class FixedPort:
    """A listener with a fixed port, or the port of the manifest key `key`."""

    name: str
    port: int = 0
    key: str = ""
    publish: bool = True


@frozen
class Feature:
    """`gate` None = always on. `programs`, `probes` and `volumes` are tables with the fields of
    plan records.
    """

    name: str
    gate: Gate | None = None
    sources: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()
    unused_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nixpkgs: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    wrappers: tuple[tuple[str, str], ...] = ()
    made: tuple[str, ...] = ()
    npm_scripts_ignored: str = ""
    npm_optional_ignored: str = ""
    commands: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()  # of the corpus, which only an image with this feature has
    min_memory: Size | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[Mapping[str, Any], ...] = ()
    exception: SecurityExceptionNeed | None = None
    programs: tuple[Mapping[str, Any], ...] = ()
    probes: tuple[Mapping[str, Any], ...] = ()
    ports: tuple[FixedPort, ...] = ()
