"""`python -I -m agentbox.box.programs.confined NAME COMMAND…`: supervisord starts the program of a
feature with it.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from agentbox.box.supervision.backoff import backoff, end_with_supervisord
from agentbox.box.supervision.boot_record import load_plan, read_boot_record
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths, environment
from agentbox.plan.model import Plan, Ruleset
from agentbox.plan.network import gateway_port
from agentbox.sandbox import feature_program

_TEMPORARY = "TMPDIR"


def main(name: str, *command: str) -> None:
    """Executes the command, confined by the ruleset of that program in the plan in force. On an
    error it writes one sentence to its log and exits with 1.
    """
    try:
        exec_confined(Paths.for_this_process(), name, command)
    except AgentboxError as error:
        sys.exit(f"{error.message}. {error.hint}")


def exec_confined(paths: Paths, name: str, command: tuple[str, ...]) -> None:
    """Raises AgentboxError for a program without a ruleset in the plan, for a kernel that cannot
    enforce it, and for a missing command.
    """
    record = read_boot_record(paths)
    plan = record.load_plan() if record else load_plan(paths.plan)
    if name not in plan.rulesets:
        raise AgentboxError(
            f"cannot start {name}: the plan has no ruleset for it", "Build the image again."
        )
    ruleset = plan.rulesets[name]
    if not plan.program(name).startsecs:
        backoff(paths, name)
    end_with_supervisord(signal.SIGKILL)  # it is not drained
    try:
        temporary = _make_directories(paths, name, ruleset)
        for mechanism, reason in _confine(paths, plan, ruleset, temporary).items():
            sys.stderr.write(f"{name} is not fully confined: {mechanism}: {reason}\n")
        sys.stderr.flush()
        os.execve(command[0], list(command), {**environment(), _TEMPORARY: str(temporary)})
    except OSError as error:
        raise AgentboxError(
            f"cannot start {name}: {error.strerror}",
            "`agentbox doctor` shows what this kernel can enforce; limits.allow_degraded "
            "names what may be missing.",
        ) from error


def _make_directories(paths: Paths, name: str, ruleset: Ruleset) -> Path:
    """Creates missing directories, and a temporary one with an unpredictable name in place of those
    of earlier starts. Raises OSError.
    """
    connection = paths.agent_host_token(name).parent  # that agent-host writes its token into
    own = [path for path in map(paths.resolve, ruleset.reads) if path == connection]
    for path in (*map(paths.resolve, ruleset.folders), *own):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for earlier in paths.tmp.glob(f"{name}.*"):
        shutil.rmtree(earlier)
    return Path(tempfile.mkdtemp(prefix=f"{name}.", dir=paths.tmp))


def _confine(paths: Paths, plan: Plan, ruleset: Ruleset, temporary: Path) -> dict[str, str]:
    used_ports = {
        *(row.port for row in plan.ports),
        gateway_port(plan, in_container=paths.is_container),
    }
    return feature_program.apply(
        ruleset,
        feature_program.grants(ruleset, paths, temporary),
        feature_program.bindable_ports(ruleset, used_ports),
        allow_degraded=plan.limits.allow_degraded,
        path_boundary=feature_program.boundary(paths, plan.writable_roots),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
