"""The smallest manifest that turns one feature on, with the exceptions that it and what it needs ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentbox.features import Delta, Feature, effective_delta, enabled, widenings
from agentbox.manifest import parse
from agentbox.manifest.spelling import spell

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
    """Lines for a manifest, the exceptions among them, and which of their devices this machine lacks."""

    text: str
    exceptions: tuple[str, ...]
    absent: tuple[str, ...]


def wanted(features: Mapping[str, Feature], name: str) -> Wanted:
    """Raises KeyError for a feature that does not exist or has no gate."""
    gate = features[name].gate
    if gate is None:
        raise KeyError(name)
    text = f"{gate.key} = {spell(gate.values[0])}\n" + _ALSO.get(gate.key, "")
    text += f"{gate.when} = true\n" if gate.when else ""
    on = enabled(parse((_HEAD + text).encode(), name), features)
    keys = sorted({need.key for need in (features[each].exception for each in on) if need})
    blocks = "".join(f"security.exceptions.{key} = {{}}\n" for key in keys)
    model = parse((_HEAD + text + blocks).encode(), name).usable
    deltas = [effective_delta(model, key) for key in keys]
    if any(widenings(delta) for delta in deltas):
        blocks += "security.audit_acknowledged = true\n"
    return Wanted(text + blocks, tuple(keys), _absent(deltas))


def _absent(deltas: Sequence[Delta]) -> tuple[str, ...]:
    devices = {path for delta in deltas for path in delta.devices if not Path(path).exists()}
    requests = {f"{row.driver} devices" for delta in deltas for row in delta.device_requests if not _NVIDIA.exists()}
    return tuple(sorted(devices | requests))


def gated(features: Mapping[str, Feature]) -> tuple[str, ...]:
    """Every optional feature, sorted."""
    return tuple(sorted(name for name, feature in features.items() if feature.gate))
