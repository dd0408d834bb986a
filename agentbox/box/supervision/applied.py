"""The plan whose live keys were applied in this boot, for an API that is started again. A boot clears it away."""

from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.files.atomic import replace_json
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


def keep(paths: Paths, plan: Plan) -> None:
    """Raises OSError where there is no room; then the one before stays."""
    replace_json(paths.applied_plan, plan.to_json(), durable=False)


def in_force(paths: Paths, booted: Plan) -> Plan:
    """The plan that was applied last, else the one that the box booted with. Raises AgentboxError for a damaged one."""
    return load_plan(paths.applied_plan) if paths.applied_plan.exists() else booted


def mark(paths: Paths) -> tuple[int, int, int] | None:
    """Another one after each plan that is applied, None before the first. Each is a new file, so that two within one tick
    of the file system's clock differ too."""
    try:
        found = paths.applied_plan.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
