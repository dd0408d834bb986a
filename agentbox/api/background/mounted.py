"""The mounted manifest against the one in force."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentbox.box.supervision.boot_record import Drifted
from agentbox.core.canonical import digest
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import ValidationError
from agentbox.plan.drift import CLASSES, drift
from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from agentbox.api.services import Services

INVALID = "invalid"
_SETTLE_SECONDS = 0.5  # a mount holds the inode, so a manifest is written in place
_LEVELS = {"live": "info", "boot": "info", "recreate": "warn", "rebuild": "error", INVALID: "error"}


@dataclass(frozen=True)
class Compared:
    """Key paths that differ, by apply class; `error` is why the file cannot be used at all."""

    expected: str = ""
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""

    def level(self, kind: str) -> str:
        """Of the event about that class."""
        return _LEVELS[kind]

    def rows(self, control: str) -> tuple[Drifted, ...]:
        """At most one: `recreate resources.pids; live limits.pids`."""
        if not self.keys:
            return ()
        told = self.error or "; ".join(f"{kind} {', '.join(keys)}" for kind, keys in self.keys.items())
        return (Drifted(control, self.expected, told),)


class MountedManifest:
    """Plans the mounted file anew only when its bytes have changed."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self._seen = ("", "")  # digest in force, digest of the file
        self._last = Compared()

    def compare(self) -> Compared:
        """Blocking. No file is no drift of its own: the box then runs on the baked manifest, and a mount that is gone
        is told as posture."""
        plan, paths = self._services.plan, self._services.paths
        try:
            found = digest(paths.manifest.read_bytes())
            if (plan.digest, found) == self._seen:
                return self._last
            while found != plan.digests.manifest and (later := _a_moment_later(paths)) != found:
                found = later
        except FileNotFoundError:
            return Compared()
        except OSError as error:
            return Compared(plan.digests.manifest, {INVALID: ()}, f"cannot be read: {error.strerror}")
        self._seen, self._last = (plan.digest, found), _compared(paths, plan, found)
        return self._last


def _a_moment_later(paths: Paths) -> str:
    """The digest again: what was just changed may be half of what is being written. Raises OSError."""
    time.sleep(_SETTLE_SECONDS)
    return digest(paths.manifest.read_bytes())


def _compared(paths: Paths, plan: Plan, found: str) -> Compared:
    if found == plan.digests.manifest:
        return Compared()
    from agentbox.api.background.apply import (
        plan_of_mounted,
    )  # a manifest that changed is rare, and reading one costs memory

    try:
        changes = drift(plan.apply, plan_of_mounted(paths, plan).apply)
    except ValidationError as error:
        return _invalid(plan, error.members["errors"])
    except AgentboxError as error:
        return _invalid(plan, [{"pointer": "", "detail": error.message}])
    keys = {kind: getattr(changes, kind) for kind in reversed(CLASSES) if getattr(changes, kind)}
    return Compared(plan.digests.manifest, keys)


def _invalid(plan: Plan, rows: Sequence[Mapping[str, str]]) -> Compared:
    keys = tuple(sorted({row["pointer"] for row in rows if row["pointer"]}))
    return Compared(plan.digests.manifest, {INVALID: keys}, f"invalid: {rows[0]['detail']}")
