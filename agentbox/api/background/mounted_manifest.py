"""Compares the mounted manifest with the one in force."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentbox.api.plan_source import PlanSource
from agentbox.box.supervision.boot_record import PostureDrift
from agentbox.core.canonical import digest
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import ValidationError
from agentbox.plan.drift import CLASSES, find_drift
from agentbox.plan.model import Plan

INVALID = "invalid"
_STABLE_SECONDS = 0.5  # a mount holds the inode, so a manifest is written in place
_LEVELS = {"live": "info", "boot": "info", "recreate": "warn", "rebuild": "error", INVALID: "error"}


@dataclass(frozen=True)
class ManifestComparison:
    """Key paths that differ, by apply class; `error` is the reason why the file is unusable."""

    expected: str = ""
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""

    def level(self, kind: str) -> str:
        """The log level for that class."""
        return _LEVELS[kind]

    def rows(self, control: str) -> tuple[PostureDrift, ...]:
        """At most one row: `recreate resources.pids; live limits.pids`."""
        if not self.keys:
            return ()
        detail = self.error or "; ".join(
            f"{kind} {', '.join(keys)}" for kind, keys in self.keys.items()
        )
        return (PostureDrift(control, self.expected, detail),)


class MountedManifest:
    """Plans the mounted file again only when its bytes have changed."""

    def __init__(self, plans: PlanSource, paths: Paths) -> None:
        self._plans, self._paths = plans, paths
        self._compared_digests = ("", "")  # digest in force, digest of the file
        self._last = ManifestComparison()

    def compare(self) -> ManifestComparison:
        """Blocking. A missing file is not drift of its own: the box then runs on the baked
        manifest, and a missing mount is reported as posture.
        """
        plan, paths = self._plans.current, self._paths
        try:
            file_digest = digest(paths.manifest.read_bytes())
            if (plan.digest, file_digest) == self._compared_digests:
                return self._last
            while (
                file_digest != plan.digests.manifest
                and (newer_digest := _wait_and_digest(paths)) != file_digest
            ):
                file_digest = newer_digest
        except FileNotFoundError:
            return ManifestComparison()
        except OSError as error:
            return ManifestComparison(
                plan.digests.manifest, {INVALID: ()}, f"cannot be read: {error.strerror}"
            )
        self._compared_digests, self._last = (
            (plan.digest, file_digest),
            _compare(paths, plan, file_digest),
        )
        return self._last


def _wait_and_digest(paths: Paths) -> str:
    """The digest after a pause: a changed file may be incomplete. Raises OSError."""
    time.sleep(_STABLE_SECONDS)
    return digest(paths.manifest.read_bytes())


def _compare(paths: Paths, plan: Plan, file_digest: str) -> ManifestComparison:
    if file_digest == plan.digests.manifest:
        return ManifestComparison()
    from agentbox.api.background.mounted_plan import (
        build_mounted_plan,
    )  # changes are rare, and these imports cost memory

    try:
        changes = find_drift(plan.apply, build_mounted_plan(paths, plan).apply)
    except ValidationError as error:
        return _invalid(plan, error.members["errors"])
    except AgentboxError as error:
        return _invalid(plan, [{"pointer": "", "detail": error.message}])
    keys = {kind: getattr(changes, kind) for kind in reversed(CLASSES) if getattr(changes, kind)}
    return ManifestComparison(plan.digests.manifest, keys)


def _invalid(plan: Plan, rows: Sequence[Mapping[str, str]]) -> ManifestComparison:
    keys = tuple(sorted({row["pointer"] for row in rows if row["pointer"]}))
    return ManifestComparison(
        plan.digests.manifest, {INVALID: keys}, f"invalid: {rows[0]['detail']}"
    )
