"""[security]: exceptions to the container's baseline. Every field adds; none removes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from agentbox.manifest.types import BoxPath, Range, Size, TextPattern, TypeName, Unique, key

ExceptionKey = Literal[
    "desktop",
    "gpu-rocm",
    "gpu-cuda",
    "gaussian-splatting",
    "playwright",
    "code-server",
    "telegram-mirror",
]


@dataclass(frozen=True, kw_only=True)
class TmpfsTable:
    """A memory file system, rendered with uid and gid 1000, nosuid, nodev."""

    target: BoxPath = key("", "recreate", required=True)
    size: Size = key(Size("1MiB"), "recreate", required=True)
    mode: Annotated[str, TextPattern("^[0-7]{3,4}$")] = key("0700", "recreate")
    exec: bool = key(False, "recreate")


@dataclass(frozen=True, kw_only=True)
class VolumeTable:
    """A named volume, or a host path when `source` is absolute."""

    source: Annotated[str, TypeName("volume_source")] = key("", "recreate", required=True)
    target: BoxPath = key("", "recreate", required=True)
    read_only: bool = key(False, "recreate")


@dataclass(frozen=True, kw_only=True)
class DeviceRequestTable:
    """Devices requested from a driver; `count` -1 = all."""

    driver: Annotated[str, TypeName("word")] = key("", "recreate", required=True)
    count: Annotated[int, Range(-1, 256)] = key(-1, "recreate")
    capabilities: Annotated[tuple[Annotated[str, TypeName("word")], ...], Unique()] = key(
        (), "recreate", required=True
    )


@dataclass(frozen=True, kw_only=True)
class SecurityExceptionTable:
    """[security.exceptions.<key>]: an exception, active while its gate is on."""

    builtin: bool = key(True, "recreate")
    inherits: Annotated[tuple[ExceptionKey, ...], Unique()] = key((), "recreate")
    reason: Annotated[str, TextPattern("^(|.{10,200})$")] = key("", "recreate")
    tmpfs: tuple[TmpfsTable, ...] = key((), "recreate")
    volumes: tuple[VolumeTable, ...] = key((), "recreate")
    devices: Annotated[tuple[Annotated[str, TypeName("device")], ...], Unique()] = key(
        (), "recreate"
    )
    group_add: Annotated[tuple[Annotated[str, TypeName("group")], ...], Unique()] = key(
        (), "recreate"
    )
    cap_add: Annotated[tuple[Annotated[str, TypeName("capability")], ...], Unique()] = key(
        (), "recreate"
    )
    device_requests: tuple[DeviceRequestTable, ...] = key((), "recreate")
    runtime: Literal["", "nvidia"] = key("", "recreate")
    seccomp: Annotated[str, TextPattern("^[A-Za-z0-9._-]*$")] = key("", "recreate")


@dataclass(frozen=True, kw_only=True)
class SecurityTable:
    """Exceptions, and the operator's acknowledgement."""

    audit_acknowledged: bool = key(False, "recreate")
    exceptions: Mapping[ExceptionKey, SecurityExceptionTable] = field(default_factory=dict)
