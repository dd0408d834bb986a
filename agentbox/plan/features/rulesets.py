"""Feature file -> rulesets of its programs. Pure; `sandbox/feature_program.py` enforces them (ADR
0033). A program implicitly has the volumes and ports of its feature, its password, and the
workspace if it runs there. The rest is in its `sandbox` table.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentbox.core.paths import Paths
from agentbox.manifest.features.model import Feature
from agentbox.plan.features.placeholders import PASSWORD, fill_placeholders
from agentbox.plan.model import Ruleset, SecurityExceptionPlan
from agentbox.plan.names import LEGACY_TOKEN

SANDBOX: Final = "sandbox"
_BOX = Paths()
_NVIDIA: Final = ("nvidia", "/dev/nvidia*")


def build_ruleset(
    feature: Feature,
    program: Mapping[str, Any],
    placeholders: Mapping[str, Any],
    values: Mapping[str, Any],
    exceptions: Iterable[SecurityExceptionPlan],
) -> Ruleset:
    """The ruleset of one program. `placeholders` and `values` as in `build_contribution`;
    `exceptions`: those of the box. A program may use the devices of all, and the volumes of its
    feature's exception. Raises PlanError for an unknown placeholder.
    """
    sandbox = fill_placeholders(program.get(SANDBOX, {}), placeholders, feature.name)
    workspace = (str(_BOX.workspace),) if _is_in_workspace(program.get("directory", "/")) else ()
    password = (str(_BOX.password(program[PASSWORD]["file"])),) if PASSWORD in program else ()
    token = _token_paths(values) if sandbox.get("token") else ()
    written, read = _volumes(feature, exceptions)
    return Ruleset(
        folders=tuple(dict.fromkeys((*workspace, *written, *sandbox.get("folders", ())))),
        runs=workspace,
        unlisted=tuple(sandbox.get("unlisted", ())),
        reads=(
            *password,
            *secret_paths(sandbox.get("secrets", ())),
            *token,
            *sandbox.get("reads", ()),
            *read,
        ),
        devices=_devices(exceptions),
        listens=tuple(
            sorted(values[port.key] if port.key else port.port for port in feature.ports)
        ),
        network=sandbox.get("network", False),
        sockets=sandbox.get("sockets", False),
    )


def _volumes(
    feature: Feature, exceptions: Iterable[SecurityExceptionPlan]
) -> tuple[list[str], list[str]]:
    """Writable and read-only paths."""
    key = feature.exception.key if feature.exception else None
    mounts = [(volume["target"], volume.get("read_only", False)) for volume in feature.volumes]
    mounts += [
        (row.target, row.read_only)
        for delta in exceptions
        if delta.key == key
        for row in delta.volumes
    ]
    return [target for target, read_only in mounts if not read_only], [
        target for target, read_only in mounts if read_only
    ]


def _devices(exceptions: Iterable[SecurityExceptionPlan]) -> tuple[str, ...]:
    vendor, names = _NVIDIA
    devices = {device for delta in exceptions for device in delta.devices}
    devices |= {
        names
        for delta in exceptions
        for request in delta.device_requests
        if request.driver == vendor
    }
    return tuple(sorted(devices))


def _is_in_workspace(directory: str) -> bool:
    return directory == str(_BOX.workspace) or directory.startswith(f"{_BOX.workspace}/")


def secret_paths(names: Iterable[str]) -> tuple[str, ...]:
    """Where secrets of these names may be in a box."""
    return tuple(
        str(directory / name)
        for name in names
        for directory in (_BOX.mounted_secrets, _BOX.moved_secrets)
    )


def _token_paths(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The possible locations of the box's API token, and the plan in force."""
    names = (name for name in (values["api.token_env"], LEGACY_TOKEN) if name)
    return (*secret_paths(names), str(_BOX.api_key), str(_BOX.boot_record), str(_BOX.drift_plan))
