"""The state shared by the phases of one boot. Each phase reads the results of earlier ones and adds
its own. Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentbox.box.supervision.boot_event_log import BootEventLog
from agentbox.box.supervision.boot_record import Posture, PostureDrift, PreviousBoot
from agentbox.box.supervision.fault_hooks import FaultHooks
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import TARGET_VARIABLE


@dataclass
class Context:
    """The only mutable record of the boot: filled by phases 0 to 5, then written as `boot.json`."""

    paths: Paths
    env: Mapping[str, str]
    log: BootEventLog
    baked: Plan
    plan: Plan  # the plan in force
    plan_path: Path
    supervisord_conf: Path
    probes_path: Path
    started: float  # of this process, seconds of CLOCK_BOOTTIME
    strict: bool = False
    strict_root: bool = False  # AGENTBOX_STRICT_IMMUTABLE: only a writable root is fatal
    landlock_abi: int = 0
    stale: tuple[PostureDrift, ...] = ()  # this container was made for another manifest
    posture: Posture = field(default_factory=Posture)
    previous: PreviousBoot = field(default_factory=PreviousBoot)
    hooks: FaultHooks = field(default_factory=FaultHooks)
    optional_missing: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The target that the renderer passed to the box; "" for every target that can hold the
        whole plan.
        """
        return self.env.get(TARGET_VARIABLE, "")

    def emit(self, event: str, *, level: str | None = None, **fields: Any) -> None:
        """Emits an event of this boot."""
        self.log.emit(event, level=level, **fields)
