"""The seven security exceptions: what each adds to the baseline. They cannot remove anything.
Merging them into a baseline is done by the plan.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

from agentbox.core.data_files import config_dir
from agentbox.core.frozen import frozen
from agentbox.manifest.features.model import Feature
from agentbox.manifest.model import Model
from agentbox.manifest.tables.security import (
    DeviceRequestTable,
    SecurityExceptionTable,
    TmpfsTable,
    VolumeTable,
)
from agentbox.manifest.types import ExceptionKey, Size

_R = TypeVar("_R", TmpfsTable, VolumeTable)
WIDENING: Final = ("devices", "group_add", "cap_add", "device_requests", "runtime", "seccomp")
"""Fields that add a privilege. So does a volume with a host path."""


@frozen
class SecurityExceptionDelta:
    """What an exception adds. Field names are those of its manifest table."""

    reason: str = ""
    tmpfs: tuple[TmpfsTable, ...] = ()
    volumes: tuple[VolumeTable, ...] = ()
    devices: tuple[str, ...] = ()
    group_add: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    device_requests: tuple[DeviceRequestTable, ...] = ()
    runtime: str = ""
    seccomp: str = ""

    @property
    def is_empty(self) -> bool:
        """True when nothing is added."""
        return replace(self, reason="") == SecurityExceptionDelta()


_NVIDIA: Final = DeviceRequestTable(
    driver="nvidia", count=-1, capabilities=("gpu", "compute", "utility")
)
BUILTIN: Final[Mapping[ExceptionKey, SecurityExceptionDelta]] = {
    "code-server": SecurityExceptionDelta(
        reason="the browser editor stores its settings and extensions",
        volumes=(VolumeTable(source="code-server", target="/var/lib/agentbox/code-server"),),
    ),
    "desktop": SecurityExceptionDelta(
        reason="the display server needs its socket and runtime directories",
        tmpfs=(
            TmpfsTable(target="/run/user/1000", size=Size("32MiB"), mode="0700"),
            TmpfsTable(target="/tmp/.X11-unix", size=Size("1MiB"), mode="1777"),
        ),
    ),
    "gaussian-splatting": SecurityExceptionDelta(reason="training runs on the CUDA devices"),
    "gpu-cuda": SecurityExceptionDelta(
        reason="models run on the NVIDIA devices", device_requests=(_NVIDIA,)
    ),
    "gpu-rocm": SecurityExceptionDelta(
        reason="models run on the AMD devices",
        devices=("/dev/dri", "/dev/kfd"),
        group_add=("render", "video"),
    ),
    "playwright": SecurityExceptionDelta(
        reason="the browser's processes share memory",
        tmpfs=(TmpfsTable(target="/dev/shm", size=Size("512MiB"), mode="1777"),),
    ),
    "telegram-mirror": SecurityExceptionDelta(
        reason="the mirror stores its position in the chat",
        volumes=(VolumeTable(source="telegram", target="/var/lib/agentbox/telegram"),),
    ),
}
INHERITED: Final[Mapping[ExceptionKey, tuple[ExceptionKey, ...]]] = {
    "gaussian-splatting": ("gpu-cuda",)
}
"""Built-in inheritance of exceptions."""


def direct_delta(key: ExceptionKey, block: SecurityExceptionTable) -> SecurityExceptionDelta:
    """Built-in and written, without inherited deltas."""
    return union(_written_delta(block), BUILTIN[key] if block.builtin else SecurityExceptionDelta())


def parents(key: ExceptionKey, block: SecurityExceptionTable | None) -> tuple[ExceptionKey, ...]:
    """The keys that it inherits from."""
    built_in = INHERITED.get(key, ()) if block is None or block.builtin else ()
    return (*built_in, *(block.inherits if block else ()))


def effective_delta(
    model: Model, key: ExceptionKey, visited: tuple[ExceptionKey, ...] = ()
) -> SecurityExceptionDelta:
    """Built-in, written and inherited. An inherited key without a block has its built-in delta.
    Cycles are ignored here: rule E205 and `inheritance_error` reject them.
    """
    block = model.security.exceptions.get(key)
    delta = direct_delta(key, block or SecurityExceptionTable())
    for parent in parents(key, block):
        if parent not in (*visited, key):
            delta = union(delta, effective_delta(model, parent, (*visited, key)))
    return delta


def inheritance_error(
    model: Model,
    key: ExceptionKey,
    gates: Container[ExceptionKey],
    chain: tuple[ExceptionKey, ...] = (),
) -> str:
    """Why a key cannot inherit: a cycle, or a parent whose gate is off (`gates` are those that are
    on). Empty if it can.
    """
    for parent in parents(key, model.security.exceptions.get(key)):
        if parent == key or parent in chain:
            return f"{key} inherits itself through {parent}"
        if parent not in gates:
            return f"{key} inherits {parent}, whose gate is off"
        if reason := inheritance_error(model, parent, gates, (*chain, key)):
            return reason
    return ""


def union(first: SecurityExceptionDelta, second: SecurityExceptionDelta) -> SecurityExceptionDelta:
    """Combines both, sorted: by value; by target for tmpfs and volumes. Single values are the
    first's; different sources for one target both stay, for rule E205 and the merge to reject.
    """
    merged: dict[str, Any] = {}
    for item in fields(SecurityExceptionDelta):
        value, other = getattr(first, item.name), getattr(second, item.name)
        merged[item.name] = (
            tuple(dict.fromkeys((*value, *other))) if isinstance(value, tuple) else value or other
        )
    for name in ("devices", "group_add", "cap_add"):
        merged[name] = tuple(sorted(merged[name]))
    merged["tmpfs"] = _join_rows(merged["tmpfs"], lambda row: row.target, _join_tmpfs)
    merged["volumes"] = _join_rows(
        merged["volumes"], lambda row: (row.target, row.source), _join_volume
    )
    return SecurityExceptionDelta(**merged)


def _join_rows(
    rows: tuple[_R, ...], key: Callable[[_R], Any], join: Callable[[_R, _R], _R]
) -> tuple[_R, ...]:
    merged: dict[Any, _R] = {}
    for row in rows:
        merged[key(row)] = join(merged[key(row)], row) if key(row) in merged else row
    return tuple(merged[key_value] for key_value in sorted(merged))


def _join_tmpfs(first: TmpfsTable, second: TmpfsTable) -> TmpfsTable:
    """The larger size, the bits of both modes, executable if either is."""
    mode = f"{int(first.mode, 8) | int(second.mode, 8):04o}"
    return replace(
        first, size=max(first.size, second.size), mode=mode, exec=first.exec or second.exec
    )


def _join_volume(first: VolumeTable, second: VolumeTable) -> VolumeTable:
    """Writable if either is."""
    return replace(first, read_only=first.read_only and second.read_only)


def _written_delta(block: SecurityExceptionTable) -> SecurityExceptionDelta:
    return SecurityExceptionDelta(
        **{item.name: getattr(block, item.name) for item in fields(SecurityExceptionDelta)}
    )


def active_keys(
    model: Model, features: Mapping[str, Feature], enabled: tuple[str, ...]
) -> tuple[ExceptionKey, ...]:
    """The keys with a block and an enabled gate, sorted."""
    gates = open_gates(features, enabled)
    return tuple(sorted(key for key in model.security.exceptions if key in gates))


def open_gates(
    features: Mapping[str, Feature], enabled: tuple[str, ...]
) -> frozenset[ExceptionKey]:
    """The exception keys of enabled features."""
    needs = (features[name].exception for name in enabled)
    return frozenset(need.key for need in needs if need is not None)


def widenings(delta: SecurityExceptionDelta) -> tuple[str, ...]:
    """Descriptions of added privileges: `devices /dev/kfd`."""
    result = []
    for name in WIDENING:
        value = getattr(delta, name)
        items = value if isinstance(value, tuple) else (value,) if value else ()
        result += [
            f"{name} {item.driver if isinstance(item, DeviceRequestTable) else item}"
            for item in items
        ]
    hosts = (volume for volume in delta.volumes if volume.source.startswith("/"))
    return (*result, *(f"host directory {volume.source}" for volume in hosts))


def seccomp_files() -> frozenset[str]:
    """The stems in config/seccomp/: valid values of a seccomp field."""
    return frozenset(path.stem for path in (config_dir() / "seccomp").glob("*.json"))
