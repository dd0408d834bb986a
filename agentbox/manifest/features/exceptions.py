"""The seven security exceptions: what each adds to the baseline. Nothing here can take anything away.

Only the deltas themselves; merging them into a baseline is the plan's work.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

from agentbox.core.data_files import config_dir
from agentbox.manifest.features.model import Feature
from agentbox.manifest.model import Model
from agentbox.manifest.tables.security import DeviceRequest, ExceptionKey, SecurityException, Tmpfs, Volume
from agentbox.manifest.types import Size

_R = TypeVar("_R", Tmpfs, Volume)
WIDENING: Final = ("devices", "group_add", "cap_add", "device_requests", "runtime", "seccomp")
"""Fields that widen what the box may do. A volume with a host path widens too."""


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What an exception adds. Field names are those of its manifest table."""

    reason: str = ""
    tmpfs: tuple[Tmpfs, ...] = ()
    volumes: tuple[Volume, ...] = ()
    devices: tuple[str, ...] = ()
    group_add: tuple[str, ...] = ()
    cap_add: tuple[str, ...] = ()
    device_requests: tuple[DeviceRequest, ...] = ()
    runtime: str = ""
    seccomp: str = ""

    @property
    def empty(self) -> bool:
        """True when nothing is added."""
        return replace(self, reason="") == Delta()


_NVIDIA: Final = DeviceRequest(driver="nvidia", count=-1, capabilities=("gpu", "compute", "utility"))
BUILTIN: Final[Mapping[ExceptionKey, Delta]] = {
    "code-server": Delta(
        reason="the browser editor keeps its settings and extensions",
        volumes=(Volume(source="code-server", target="/var/lib/agentbox/code-server"),),
    ),
    "desktop": Delta(
        reason="the display server needs its socket folder and its runtime folder",
        tmpfs=(
            Tmpfs(target="/run/user/1000", size=Size("32MiB"), mode="0700"),
            Tmpfs(target="/tmp/.X11-unix", size=Size("1MiB"), mode="1777"),
        ),
    ),
    "gaussian-splatting": Delta(reason="training runs on the CUDA devices"),
    "gpu-cuda": Delta(reason="models run on the NVIDIA devices", device_requests=(_NVIDIA,)),
    "gpu-rocm": Delta(
        reason="models run on the AMD devices", devices=("/dev/dri", "/dev/kfd"), group_add=("render", "video")
    ),
    "playwright": Delta(
        reason="the browser's processes share memory",
        tmpfs=(Tmpfs(target="/dev/shm", size=Size("512MiB"), mode="1777"),),
    ),
    "telegram-mirror": Delta(
        reason="the mirror keeps its place in the chat",
        volumes=(Volume(source="telegram", target="/var/lib/agentbox/telegram"),),
    ),
}
INHERITED: Final[Mapping[ExceptionKey, tuple[ExceptionKey, ...]]] = {"gaussian-splatting": ("gpu-cuda",)}
"""What a built-in delta takes from another."""


def own_delta(key: ExceptionKey, block: SecurityException) -> Delta:
    """Built-in and written, without what is inherited."""
    return union(_written(block), BUILTIN[key] if block.builtin else Delta())


def parents(key: ExceptionKey, block: SecurityException | None) -> tuple[ExceptionKey, ...]:
    """The keys whose effective delta is added."""
    built_in = INHERITED.get(key, ()) if block is None or block.builtin else ()
    return (*built_in, *(block.inherits if block else ()))


def effective_delta(model: Model, key: ExceptionKey, seen: tuple[ExceptionKey, ...] = ()) -> Delta:
    """Built-in, written and inherited. A key inherited without a block gives its built-in delta. A cycle ends here
    silently: rule E205 and `inheritance_fault` refuse it."""
    block = model.security.exceptions.get(key)
    delta = own_delta(key, block or SecurityException())
    for parent in parents(key, block):
        if parent not in (*seen, key):
            delta = union(delta, effective_delta(model, parent, (*seen, key)))
    return delta


def inheritance_fault(
    model: Model, key: ExceptionKey, gated: Container[ExceptionKey], chain: tuple[ExceptionKey, ...] = ()
) -> str:
    """Why what a key inherits cannot be added: a cycle, or a parent whose gate is off (`gated` are those that are on).
    Empty when it can."""
    for parent in parents(key, model.security.exceptions.get(key)):
        if parent == key or parent in chain:
            return f"{key} inherits itself through {parent}"
        if parent not in gated:
            return f"{key} inherits {parent}, whose gate is off"
        if fault := inheritance_fault(model, parent, gated, (*chain, key)):
            return fault
    return ""


def union(first: Delta, second: Delta) -> Delta:
    """Both together, sorted: by value; by target for tmpfs and volumes. What holds one value is the first's; two sources
    for one target both stay, for rule E205 to tell and for the merge to refuse."""
    merged: dict[str, Any] = {}
    for item in fields(Delta):
        left, right = getattr(first, item.name), getattr(second, item.name)
        merged[item.name] = tuple(dict.fromkeys((*left, *right))) if isinstance(left, tuple) else left or right
    for name in ("devices", "group_add", "cap_add"):
        merged[name] = tuple(sorted(merged[name]))
    merged["tmpfs"] = _joined(merged["tmpfs"], lambda row: row.target, _joined_tmpfs)
    merged["volumes"] = _joined(merged["volumes"], lambda row: (row.target, row.source), _joined_volume)
    return Delta(**merged)


def _joined(rows: tuple[_R, ...], key: Callable[[_R], Any], join: Callable[[_R, _R], _R]) -> tuple[_R, ...]:
    found: dict[Any, _R] = {}
    for row in rows:
        found[key(row)] = join(found[key(row)], row) if key(row) in found else row
    return tuple(found[place] for place in sorted(found))


def _joined_tmpfs(one: Tmpfs, other: Tmpfs) -> Tmpfs:
    """The larger size, the bits of both modes, executable if either is."""
    mode = f"{int(one.mode, 8) | int(other.mode, 8):04o}"
    larger = max((one.size, other.size), key=lambda size: size.bytes)
    return replace(one, size=larger, mode=mode, exec=one.exec or other.exec)


def _joined_volume(one: Volume, other: Volume) -> Volume:
    """Writable if either is."""
    return replace(one, read_only=one.read_only and other.read_only)


def _written(block: SecurityException) -> Delta:
    return Delta(**{item.name: getattr(block, item.name) for item in fields(Delta)})


def active(model: Model, features: Mapping[str, Feature], on: tuple[str, ...]) -> tuple[ExceptionKey, ...]:
    """The keys whose block is written and whose gate is on, sorted."""
    gated = gates_on(features, on)
    return tuple(sorted(key for key in model.security.exceptions if key in gated))


def gates_on(features: Mapping[str, Feature], on: tuple[str, ...]) -> frozenset[ExceptionKey]:
    """The exception keys of the features that are on."""
    needs = (features[name].exception for name in on)
    return frozenset(need.key for need in needs if need is not None)


def widenings(delta: Delta) -> tuple[str, ...]:
    """What of a delta widens, in words: `devices /dev/kfd`."""
    found = []
    for name in WIDENING:
        value = getattr(delta, name)
        items = value if isinstance(value, tuple) else (value,) if value else ()
        found += [f"{name} {item.driver if isinstance(item, DeviceRequest) else item}" for item in items]
    hosts = (volume for volume in delta.volumes if volume.source.startswith("/"))
    return (*found, *(f"host folder {volume.source}" for volume in hosts))


def seccomp_files() -> frozenset[str]:
    """The stems in config/seccomp/: what a seccomp field may name."""
    return frozenset(path.stem for path in (config_dir() / "seccomp").glob("*.json"))
