"""`boot.json`: the results of Stage A, for everything that runs later. Standard library only."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.fault_hooks import FaultHooks
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan

Shutdown = Literal["first", "clean", "unclean"]


@dataclass(frozen=True)
class PreviousBoot:
    """The previous boot on the same state volume. `sentinel_sha256` is that of the last sealed
    boot.
    """

    boot_id: str | None = None
    sentinel_sha256: str | None = None
    shutdown: Shutdown = "first"


@dataclass(frozen=True)
class PostureDrift:
    """One control of the posture that differs from the plan."""

    control: str
    expected: str
    found: str


@dataclass(frozen=True)
class Posture:
    """What the kernel enforces on this box, as measured from inside. `caps` is the effective set as
    hex.
    """

    uid: int = -1
    caps: str = ""
    no_new_privs: bool = False
    seccomp_mode: int = 0
    seccomp_fingerprint: str = ""
    root_read_only: bool = False
    drift: tuple[PostureDrift, ...] = ()


@dataclass(frozen=True)
class BootRecord:
    """`started` is the start of PID 1 in seconds of CLOCK_BOOTTIME; digests are `sha256:<hex>`,
    None when unknown.
    """

    boot_id: str
    started: float
    started_at: str
    strict: bool
    image_ref: str
    digests: Mapping[str, str | None]
    plan: (
        str  # path of the plan in force: the baked one, or the one rendered for a changed manifest
    )
    supervisord_conf: str
    kernel_release: str
    landlock_abi: int
    posture: Posture = field(default_factory=Posture)
    previous: PreviousBoot = field(default_factory=PreviousBoot)
    target: str = ""  # kubernetes, when its renderer set it
    protections_absent: tuple[str, ...] = ()
    optional_missing: tuple[str, ...] = ()  # ids of optional probes that failed in phase 5
    hooks: FaultHooks = field(default_factory=FaultHooks)
    schema: int = 1

    def write(self, paths: Paths) -> None:
        replace_json(paths.boot_record, asdict(self), durable=False)

    def log(self, paths: Paths) -> BootEventLog:
        """Returns a writer for events of this boot."""
        return BootEventLog(paths, self.boot_id, self.digests.get("plan") or "", self.image_ref)

    def load_plan(self) -> Plan:
        """The plan in force. Raises AgentboxError when it is missing or invalid."""
        return load_plan(Path(self.plan))


def read_boot_record(paths: Paths) -> BootRecord | None:
    """The record of the running boot, or None before phase 5. Raises ValueError for a damaged
    file.
    """
    document = read_json(paths.boot_record)
    return None if document is None else _parse_record(document)


def load_plan(path: Path) -> Plan:
    """Reads a plan. Raises AgentboxError naming the file when it is missing, unreadable or
    invalid.
    """
    try:
        return Plan.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise AgentboxError(
            f"cannot read the plan {path}: {error}",
            "The image is damaged: build it again with `agentbox build`.",
        ) from error


def _parse_record(document: dict[str, Any]) -> BootRecord:
    field_names = {entry.name for entry in fields(BootRecord)}
    if unknown := sorted(set(document) - field_names):
        raise ValueError(f"boot.json has an unknown field {unknown[0]}")
    posture = document["posture"]
    drift = tuple(PostureDrift(**entry) for entry in posture["drift"])
    return BootRecord(
        **{
            **document,
            "posture": Posture(**{**posture, "drift": drift}),
            "previous": PreviousBoot(**document["previous"]),
            "protections_absent": tuple(document["protections_absent"]),
            "optional_missing": tuple(document["optional_missing"]),
            "hooks": FaultHooks.from_json(document["hooks"]),
        }
    )
