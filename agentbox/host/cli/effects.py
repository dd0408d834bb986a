"""What two manifests make of everything else: features, packages, programs, ports, privileges, files, findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentbox.core.canonical import digest
from agentbox.core.errors import AgentboxError
from agentbox.host.packages.wanted import host_system, inputs_of
from agentbox.manifest.features.loader import enabled
from agentbox.manifest.features.model import Feature
from agentbox.manifest.load import Manifest
from agentbox.manifest.rules.engine import run
from agentbox.plan.build import make_plan
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.lockfile.writer import write
from agentbox.plan.merge import effective
from agentbox.plan.model import Plan
from agentbox.plan.render.targets import ALL, Given, render

Rows = Mapping[str, str]
"""Names of one area with what is said of each."""

_IMAGE = f"agentbox:diff@sha256:{'0' * 64}"
_INPUTS = ("agentbox.toml",)  # copied, not generated


@dataclass(frozen=True)
class Moved:
    """One row of an area. `old` and `new` are "" on the side that does not have it."""

    area: str
    sign: str
    name: str
    old: str = ""
    new: str = ""

    @property
    def detail(self) -> str:
        """`old -> new` of a change, else what is said of the row."""
        return f"{self.old} -> {self.new}" if self.sign == "~" and (self.old or self.new) else self.new or self.old


@dataclass(frozen=True)
class Effects:
    """`why` says why one side could not be planned; the rows are then of features, packages and findings only."""

    rows: tuple[Moved, ...]
    why: str = ""


def effects(old: Manifest, new: Manifest, features: Mapping[str, Feature]) -> Effects:
    """Both fit the schema. No lock is read: packages are those that the feature files and the manifest name."""
    sides = [_named(manifest, features) for manifest in (old, new)]
    why = ""
    try:
        planned = [_planned(manifest, features) for manifest in (old, new)]
    except AgentboxError as error:
        why = error.message
    else:
        sides = [{**side, **more} for side, more in zip(sides, planned, strict=True)]
    return Effects(tuple(_moved(*sides)), why)


def generated(manifest: Manifest, features: Mapping[str, Feature]) -> Rows:
    """The digest of every generated file by name, without the digests that name one plan. Raises AgentboxError when the
    manifest cannot be planned."""
    return _files(_plan(manifest, features))


def _moved(before: Mapping[str, Rows], after: Mapping[str, Rows]) -> Iterator[Moved]:
    for area in before:
        old, new = before[area], after[area]
        for name in sorted({*old, *new}):
            if name not in old:
                yield Moved(area, "+", name, new=new[name])
            elif name not in new:
                yield Moved(area, "-", name, old=old[name])
            elif old[name] != new[name]:
                hidden = area == "file"  # a digest says nothing to a reader
                yield Moved(area, "~", name, "" if hidden else old[name], "" if hidden else new[name])


def _named(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, Rows]:
    on = enabled(manifest, features)
    report = run(manifest, features=features)
    return {
        "feature": dict.fromkeys(on, ""),
        "package": {
            **{f"{kind} {name}": "" for at in on for kind in ("debian", "npm", "pypi") for name in getattr(features[at], kind)},
            **dict.fromkeys((f"debian {name}" for name in manifest.usable.image.extra_packages), ""),
        },
        "finding": {f"{found.code} {found.key}": found.message for found in report.findings},
    }  # fmt: skip


def _planned(manifest: Manifest, features: Mapping[str, Feature]) -> dict[str, Rows]:
    plan = _plan(manifest, features)
    return {
        "program": {row.name: "required" if row.required else "optional" for row in plan.programs},
        "probe": {row.id: row.reason for row in plan.probes},
        "port": {
            f"{row.name} ({row.owner})": f"{row.port} on {row.publish}" if row.publish else f"{row.port} inside"
            for row in plan.ports
        },
        "privilege": dict(_privileges(plan)),
        "secret": dict.fromkeys(plan.secrets, ""),
        "environment": dict(plan.environment),
        "file": _files(plan),
    }


def _plan(manifest: Manifest, features: Mapping[str, Feature]) -> Plan:
    """With the lock that `agentbox lock` would make, its packages left out."""
    inputs = inputs_of(manifest, features=features)
    lock = Lock(
        inputs=inputs.digest(),
        source=inputs.source,
        suite=inputs.suite,
        python=inputs.python,
        systems=inputs.systems,
        features=tuple(inputs.features),
    )
    here = host_system()
    system = here if here in inputs.systems else inputs.systems[0]
    return make_plan(manifest, features, write(lock), lock, system)


def _privileges(plan: Plan) -> Iterator[tuple[str, str]]:
    """What the box may do and write, exceptions included; what it is denied has no key."""
    found = effective(plan)
    yield from ((f"device {path}", "") for path in found.devices)
    yield from ((f"device request {row.driver}", f"{row.count} {', '.join(row.capabilities)}") for row in found.device_requests)  # fmt: skip
    yield from ((f"group {name}", "") for name in found.group_add)
    yield from ((f"capability {name}", "") for name in found.cap_add)
    yield from ((f"memory at {row.target}", f"{row.size >> 20} MiB {row.mode}{' exec' if row.exec else ''}") for row in found.tmpfs)  # fmt: skip
    yield from ((f"volume {row.source} at {row.target}", "read-only" if row.read_only else "writable") for row in found.volumes)  # fmt: skip
    yield "seccomp list", found.seccomp
    yield "runtime", found.runtime or "the engine's own"


def _files(plan: Plan) -> Rows:
    """Digest of every generated file, with the digests that name this one plan and manifest masked in it."""
    given = Given(plan, b"", _IMAGE, allow_psa="privileged")
    found = {name: text for name, text in render(ALL, given).items() if name not in _INPUTS}
    return {name: digest(_masked(text.decode(), plan).encode()) for name, text in found.items()}


def _masked(text: str, plan: Plan) -> str:
    for value in (plan.digest, plan.digests.manifest, plan.digests.lock):
        text = text.replace(value, "").replace(value.removeprefix("sha256:")[:12], "")
    return text
