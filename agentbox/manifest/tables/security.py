"""[security]: exceptions to the container's baseline. Every field adds; none removes."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from agentbox.core.frozen import frozen
from agentbox.manifest.declarations.constraints import Pattern, Range, Unique
from agentbox.manifest.declarations.key import entries, key
from agentbox.manifest.types import (
    BoxPath,
    Capability,
    Device,
    ExceptionKey,
    Group,
    Size,
    VolumeSource,
    Word,
)

EXCEPTIONS: Final = {
    "desktop": "X11 socket directory and runtime directory of the desktop.",
    "gpu-rocm": "AMD GPU devices and groups.",
    "gpu-cuda": "NVIDIA GPU devices.",
    "gaussian-splatting": "What gpu-cuda adds.",
    "playwright": "Shared memory for the browser.",
    "code-server": "Volume of the browser editor.",
    "telegram-mirror": "Volume of the Telegram mirror.",
}


@frozen
class TmpfsTable:
    """A memory file system, with uid and gid 1000, nosuid, nodev."""

    target: BoxPath = key("", "recreate", required=True, doc="Where it is mounted.")
    size: Size = key(Size("1MiB"), "recreate", required=True, doc="Its size.")
    mode: Annotated[str, Pattern("^[0-7]{3,4}$")] = key("0700", "recreate", doc="Permission bits.")
    exec: bool = key(False, "recreate", doc="Programs on it may be run.")


@frozen
class VolumeTable:
    """A volume."""

    source: VolumeSource = key(
        "", "recreate", required=True, doc="Volume name, or host path (widening)."
    )
    target: BoxPath = key("", "recreate", required=True, doc="Where it is mounted.")
    read_only: bool = key(False, "recreate", doc="Mounted read-only.")


@frozen
class DeviceRequestTable:
    """Devices asked of a driver of the engine."""

    driver: Word = key("", "recreate", required=True, doc="Driver of the engine.")
    count: Annotated[int, Range(-1, 256)] = key(-1, "recreate", doc="How many; -1 = all.")
    capabilities: Annotated[tuple[Word, ...], Unique()] = key(
        (), "recreate", required=True, doc="What the devices must be able to do."
    )


@frozen
class SecurityExceptionTable:
    """The delta of one exception, on while its gate is on. May be empty."""

    builtin: bool = key(
        True, "recreate", doc="Include the built-in delta; false = written fields only."
    )
    inherits: Annotated[tuple[ExceptionKey, ...], Unique()] = key(
        (), "recreate", doc="Add the effective delta of these keys.", needs=("reason",)
    )
    reason: Annotated[str, Pattern("^(|.{10,200})$")] = key(
        "",
        "recreate",
        doc='Why; "" = the built-in reason, else 10 to 200 characters. Required as soon '
        "as `inherits` or a field of the delta is written.",
    )
    tmpfs: tuple[TmpfsTable, ...] = key(
        (), "recreate", doc="Memory file systems added.", needs=("reason",)
    )
    volumes: tuple[VolumeTable, ...] = key((), "recreate", doc="Volumes added.", needs=("reason",))
    devices: Annotated[tuple[Device, ...], Unique()] = key(
        (), "recreate", doc="Devices added (widening).", needs=("reason",)
    )
    group_add: Annotated[tuple[Group, ...], Unique()] = key(
        (), "recreate", doc="Groups added (widening).", needs=("reason",)
    )
    cap_add: Annotated[tuple[Capability, ...], Unique()] = key(
        (), "recreate", doc="Capabilities added (widening).", needs=("reason",)
    )
    device_requests: tuple[DeviceRequestTable, ...] = key(
        (), "recreate", doc="Device requests added (widening).", needs=("reason",)
    )
    runtime: Literal["", "nvidia"] = key(
        "", "recreate", doc="Container runtime (widening).", needs=("reason",)
    )
    seccomp: Annotated[str, Pattern("^[A-Za-z0-9._-]*$")] = key(
        "",
        "recreate",
        doc="File stem in config/seccomp/ that replaces the baseline list (widening).",
        needs=("reason",),
    )


@frozen
class SecurityTable:
    """What the operator widens, and that they have read it. Every field adds; none removes."""

    audit_acknowledged: bool = key(
        False, "recreate", doc="The operator acknowledges what is widened (listed by rule I204)."
    )
    exceptions: Mapping[ExceptionKey, SecurityExceptionTable] = entries(
        "Exceptions to the baseline, by key.", names=EXCEPTIONS, apply="recreate"
    )
