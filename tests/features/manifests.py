"""The smallest manifest that enables one feature, with the exceptions that it and its dependencies
need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.manifest.features.loader import enabled_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.security_exceptions import (
    SecurityExceptionDelta,
    effective_delta,
    widenings,
)
from agentbox.manifest.load import parse
from agentbox.manifest.model import Model
from agentbox.manifest.toml_text import format_toml

_HEAD = 'meta = { schema_version = 1, name = "x" }\n'
# What a rule demands beside the gate.
_ALSO: Mapping[str, str] = {
    "skills.spatial_and_3d.gaussian_splatting": 'gpu.backend = "local-cuda"\n',
    "toolchains.cuda": 'gpu.backend = "local-cuda"\n',
}
# What of a delta this machine must have for a box to start with it.
_NVIDIA = Path("/dev/nvidiactl")


@dataclass(frozen=True)
class Wanted:
    """Lines for a manifest that enables the features `on` (those without a gate too), the
    exceptions among the lines, which of their devices this machine lacks, and the features of those
    devices."""

    text: str
    on: tuple[str, ...]
    exceptions: tuple[str, ...]
    absent: tuple[str, ...]
    deprived: tuple[str, ...]


def wanted(features: Mapping[str, Feature], name: str) -> Wanted:
    """Raises KeyError for a feature that does not exist or has no gate."""
    gate = features[name].gate
    if gate is None:
        raise KeyError(name)
    text = f"{gate.key} = {format_toml(gate.values[0])}\n" + _ALSO.get(gate.key, "")
    text += f"{gate.when} = true\n" if gate.when else ""
    on = enabled_features(parse((_HEAD + text).encode(), name), features)
    keys = sorted({need.key for need in (features[each].exception for each in on) if need})
    given = {key: effective_delta(_model(text + _blocks(keys, ())), key) for key in keys}
    lost = [key for key in keys if _absent(given[key])]
    blocks = _blocks(keys, lost)
    if any(widenings(delta) for key, delta in given.items() if key not in lost):
        blocks += "security.audit_acknowledged = true\n"
    absent = {device for key in lost for device in _absent(given[key])}
    deprived = (each for each in on if (need := features[each].exception) and need.key in lost)
    return Wanted(text + blocks, on, tuple(keys), tuple(sorted(absent)), tuple(deprived))


def _model(text: str) -> Model:
    return parse((_HEAD + text).encode(), "trial").usable


def _blocks(keys: Sequence[str], lost: Sequence[str]) -> str:
    """An exception whose devices are absent on this machine is written empty, so that the box
    starts and everything but its device can be tested."""
    said = (
        f"security.exceptions.{key} = {'{ builtin = false }' if key in lost else '{}'}\n"
        for key in keys
    )
    return "".join(said)


def _absent(delta: SecurityExceptionDelta) -> tuple[str, ...]:
    devices = {path for path in delta.devices if not Path(path).exists()}
    return tuple(
        sorted(
            devices
            | {f"{row.driver} devices" for row in delta.device_requests if not _NVIDIA.exists()}
        )
    )


def gated(features: Mapping[str, Feature]) -> tuple[str, ...]:
    """Every optional feature, sorted."""
    return tuple(sorted(name for name, feature in features.items() if feature.gate))
