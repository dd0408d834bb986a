"""[security]: the exceptions to the container's baseline. Every field adds; none removes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from agentbox.manifest.types import BoxPath, Pattern, Range, Size, Unique, Word, key

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
class Tmpfs:
    """A memory file system, rendered with uid and gid 1000, nosuid, nodev."""

    target: BoxPath = key("", "recreate", required=True)
    size: Size = key(Size("1MiB"), "recreate", required=True)
    mode: Annotated[str, Pattern("^[0-7]{3,4}$")] = key("0700", "recreate")
    exec: bool = key(False, "recreate")


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A named volume, or a host path when `source` is absolute."""

    source: Annotated[str, Word("volume_source")] = key("", "recreate", required=True)
    target: BoxPath = key("", "recreate", required=True)
    read_only: bool = key(False, "recreate")


@dataclass(frozen=True, kw_only=True)
class DeviceRequest:
    """Devices asked of a driver; `count` -1 = all."""

    driver: Annotated[str, Word("word")] = key("", "recreate", required=True)
    count: Annotated[int, Range(-1, 256)] = key(-1, "recreate")
    capabilities: Annotated[tuple[Annotated[str, Word("word")], ...], Unique()] = key((), "recreate", required=True)


@dataclass(frozen=True, kw_only=True)
class SecurityException:
    """[security.exceptions.<key>]: the delta of that key, on while its gate is on."""

    builtin: bool = key(True, "recreate")
    inherits: Annotated[tuple[ExceptionKey, ...], Unique()] = key((), "recreate")
    reason: Annotated[str, Pattern("^(|.{10,200})$")] = key("", "recreate")
    tmpfs: tuple[Tmpfs, ...] = key((), "recreate")
    volumes: tuple[Volume, ...] = key((), "recreate")
    devices: Annotated[tuple[Annotated[str, Word("device")], ...], Unique()] = key((), "recreate")
    group_add: Annotated[tuple[Annotated[str, Word("group")], ...], Unique()] = key((), "recreate")
    cap_add: Annotated[tuple[Annotated[str, Word("capability")], ...], Unique()] = key((), "recreate")
    device_requests: tuple[DeviceRequest, ...] = key((), "recreate")
    runtime: Literal["", "nvidia"] = key("", "recreate")
    seccomp: Annotated[str, Pattern("^[A-Za-z0-9._-]*$")] = key("", "recreate")


@dataclass(frozen=True, kw_only=True)
class Security:
    """What the operator widens, and that they have read it."""

    audit_acknowledged: bool = key(False, "recreate")
    exceptions: Mapping[ExceptionKey, SecurityException] = field(default_factory=dict)
