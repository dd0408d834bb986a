"""The plan applied last in this boot, read by a restarted API. A boot removes it."""

from agentbox.box.supervision.boot_record import load_plan
from agentbox.core.files.atomic import replace_json
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan


def store_applied(paths: Paths, plan: Plan) -> None:
    """Writes the applied plan. Raises OSError when the disk is full; the previous plan then
    stays.
    """
    replace_json(paths.applied_plan, plan.to_json(), durable=False)


def plan_in_force(paths: Paths, booted: Plan) -> Plan:
    """The plan applied last, else the one the box booted with. Raises AgentboxError for a damaged
    file.
    """
    return load_plan(paths.applied_plan) if paths.applied_plan.exists() else booted


def applied_version(paths: Paths) -> tuple[int, int, int] | None:
    """A value that changes with each applied plan; None before the first. Each plan is a new file,
    so two plans within one clock tick of the file system differ too.
    """
    try:
        stat = paths.applied_plan.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
