"""Effects of a manifest change on features, packages, programs, ports, privileges and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentbox.core.canonical import digest
from agentbox.core.errors import AgentboxError
from agentbox.host.packages.lock_inputs import host_system, lock_inputs
from agentbox.manifest.features.loader import enabled_features
from agentbox.manifest.features.model import Feature
from agentbox.manifest.load import Manifest
from agentbox.manifest.rules.engine import run_rules
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.merge import effective_profile
from agentbox.plan.model import Plan
from agentbox.plan.render.targets import ALL, RenderInput, render

AreaItems = Mapping[str, str]
"""Items of one area: name -> description."""

_IMAGE = f"agentbox:diff@sha256:{'0' * 64}"
_INPUT_FILES = ("agentbox.toml",)  # copied, not generated


@dataclass(frozen=True)
class ChangedItem:
    """One changed item of an area. `old` and `new` are "" on the side that lacks it."""

    area: str
    sign: str
    name: str
    old: str = ""
    new: str = ""

    @property
    def detail(self) -> str:
        """`old -> new` of a change, else the description of the item."""
        return (
            f"{self.old} -> {self.new}"
            if self.sign == "~" and (self.old or self.new)
            else self.new or self.old
        )


@dataclass(frozen=True)
class ManifestEffects:
    """`planning_error` is set when one side cannot be planned; the rows are then limited to
    features, packages and findings."""

    rows: tuple[ChangedItem, ...]
    planning_error: str = ""


def compare_effects(
    old: Manifest, new: Manifest, features: Mapping[str, Feature]
) -> ManifestEffects:
    """Compares two valid manifests. No lock is read: packages are those that the features and the
    manifest name."""
    sides = [_manifest_items(manifest, features) for manifest in (old, new)]
    planning_error = ""
    try:
        planned = [_plan_items(manifest, features) for manifest in (old, new)]
    except AgentboxError as error:
        planning_error = error.message
    else:
        sides = [
            {**side, **planned_items} for side, planned_items in zip(sides, planned, strict=True)
        ]
    return ManifestEffects(tuple(_changed_rows(*sides)), planning_error)


def generated_digests(manifest: Manifest, features: Mapping[str, Feature]) -> AreaItems:
    """Generated file -> digest, with digests of the plan masked. Raises AgentboxError when the
    manifest cannot be planned."""
    return _file_digests(_build_plan(manifest, features))


def _changed_rows(
    before: Mapping[str, AreaItems], after: Mapping[str, AreaItems]
) -> Iterator[ChangedItem]:
    for area in before:
        old, new = before[area], after[area]
        for name in sorted({*old, *new}):
            if name not in old:
                yield ChangedItem(area, "+", name, new=new[name])
            elif name not in new:
                yield ChangedItem(area, "-", name, old=old[name])
            elif old[name] != new[name]:
                hidden = area == "file"  # digests are not shown
                yield ChangedItem(
                    area, "~", name, "" if hidden else old[name], "" if hidden else new[name]
                )


def _manifest_items(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, AreaItems]:
    enabled_names = enabled_features(manifest, features)
    report = run_rules(manifest, features=features)
    return {
        "feature": dict.fromkeys(enabled_names, ""),
        "package": {
            **{
                f"{kind} {name}": ""
                for feature in enabled_names
                for kind in ("debian", "npm", "pypi")
                for name in getattr(features[feature], kind)
            },
            **dict.fromkeys(
                (f"debian {name}" for name in manifest.usable.image.extra_packages), ""
            ),
        },
        "finding": {
            f"{finding.code} {finding.key}": finding.message for finding in report.findings
        },
    }


def _plan_items(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, AreaItems]:
    plan = _build_plan(manifest, features)
    return {
        "program": {row.name: "required" if row.required else "optional" for row in plan.programs},
        "probe": {row.id: row.reason for row in plan.probes},
        "port": {
            f"{row.name} ({row.owner})": f"{row.port} on {row.publish}"
            if row.publish
            else f"{row.port} inside"
            for row in plan.ports
        },
        "privilege": dict(_privileges(plan)),
        "secret": dict.fromkeys(plan.secrets, ""),
        "environment": dict(plan.environment),
        "file": _file_digests(plan),
    }


def _build_plan(manifest: Manifest, features: Mapping[str, Feature]) -> Plan:
    """Builds the plan with a lock without packages."""
    inputs = lock_inputs(manifest, features=features)
    lock = Lock(
        inputs=inputs.digest(),
        source=inputs.source,
        suite=inputs.suite,
        python=inputs.python,
        systems=inputs.systems,
        features=tuple(inputs.features),
        skills=inputs.skills,
    )
    host = host_system()
    system = host if host in inputs.systems else inputs.systems[0]
    return build_plan(manifest, features, serialize_lock(lock), lock, system)


def _privileges(plan: Plan) -> Iterator[tuple[str, str]]:
    """Privileges of the box, exceptions included."""
    merged = effective_profile(plan)
    yield from ((f"device {path}", "") for path in merged.devices)
    yield from (
        (f"device request {row.driver}", f"{row.count} {', '.join(row.capabilities)}")
        for row in merged.device_requests
    )
    yield from ((f"group {name}", "") for name in merged.group_add)
    yield from ((f"capability {name}", "") for name in merged.cap_add)
    yield from (
        (f"memory at {row.target}", f"{row.size >> 20} MiB {row.mode}{' exec' if row.exec else ''}")
        for row in merged.tmpfs
    )
    yield from (
        (f"volume {row.source} at {row.target}", "read-only" if row.read_only else "writable")
        for row in merged.volumes
    )
    yield "seccomp list", merged.seccomp
    yield "runtime", merged.runtime or "the engine's default"


def _file_digests(plan: Plan) -> AreaItems:
    """Generated file -> digest, with the digests of this plan and manifest masked."""
    inputs = RenderInput(plan, b"", _IMAGE, allow_psa="privileged")
    rendered = {
        name: text for name, text in render(ALL, inputs).items() if name not in _INPUT_FILES
    }
    return {
        name: digest(_mask_digests(text.decode(), plan).encode()) for name, text in rendered.items()
    }


def _mask_digests(text: str, plan: Plan) -> str:
    for value in (plan.digest, plan.digests.manifest, plan.digests.lock):
        text = text.replace(value, "").replace(value.removeprefix("sha256:")[:12], "")
    return text
