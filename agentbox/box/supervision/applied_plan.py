"""The plan whose live keys were applied in this boot, for an API that is started again. A boot clears it away."""

from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.files.atomic import replace_json
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


def store_applied(paths: Paths, plan: Plan) -> None:
    """Raises OSError where there is no room; then the one before stays."""
    replace_json(paths.applied_plan, plan.to_json(), durable=False)


def plan_in_force(paths: Paths, booted: Plan) -> Plan:
    """The plan that was applied last, else the one that the box booted with. Raises AgentboxError for a damaged one."""
    return load_plan(paths.applied_plan) if paths.applied_plan.exists() else booted


def applied_version(paths: Paths) -> tuple[int, int, int] | None:
    """Another one after each plan that is applied, None before the first. Each is a new file, so that two within one tick
    of the file system's clock differ too."""
    try:
        stat = paths.applied_plan.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
