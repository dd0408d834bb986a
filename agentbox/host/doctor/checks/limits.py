"""Cores, open files and processes that the manifest requests for the box."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.engines import host_limits
from agentbox.host.engines.command import run

NAME = "limits"
TITLE = "cores, open files and processes requested by the manifest"
_PIDS = Path("/proc/sys/kernel/pid_max")
_THREADS = Path("/proc/sys/kernel/threads-max")


def run_check(host: CheckContext) -> Iterator[CheckResult]:
    available = _host_limits(host)
    if available is None:
        yield CheckResult(
            check=NAME,
            subject="engine",
            state="unknown",
            message="the engine does not respond: cannot determine its limits",
        )
        return
    try:
        host_limits.check(host.plan, available)
    except AgentboxError as error:
        yield CheckResult(
            check=NAME, subject="asked", state="bad", message=error.message, advice=error.hint
        )
    else:
        requested = host.plan.resources
        message = (
            f"{requested.cpus:g} of {available.cores} cores, {requested.nofile} of "
            f"{available.nofile} open files"
        )
        yield CheckResult(
            check=NAME, subject="asked", state="good", message=message, controls=("CIS 5.19",)
        )
    maximum = min(int(path.read_text(encoding="ascii")) for path in (_PIDS, _THREADS))
    ok = maximum >= host.plan.resources.pids
    yield CheckResult(
        check=NAME,
        subject="processes",
        state="good" if ok else "bad",
        message=(
            f"the kernel allows {maximum} processes and threads, the box may use "
            f"{host.plan.resources.pids}"
        ),
        advice=""
        if ok
        else "Raise kernel.pid_max and kernel.threads-max, or lower resources.pids.",
    )


def _host_limits(host: CheckContext) -> host_limits.HostLimits | None:
    if not host.is_container:
        return host_limits.process_limits()
    if host.daemon.state != "answers":
        return None
    cores = int(run(["docker", "info", "--format", "{{.NCPU}}"], doing="query docker's cores"))
    return host_limits.docker_limits(cores, host.daemon.host)
