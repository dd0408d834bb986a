"""What the manifest asks of the host for the whole box: cores and open files; and the host's room for processes."""

from collections.abc import Iterator
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row
from agentbox.host.engines import hostlimits
from agentbox.host.engines.command import run

NAME = "limits"
TITLE = "cores, open files and processes that the manifest asks for"
_PIDS = Path("/proc/sys/kernel/pid_max")
_THREADS = Path("/proc/sys/kernel/threads-max")


def look(host: Host) -> Iterator[Row]:
    found = _of(host)
    if found is None:
        yield Row(
            check=NAME, subject="engine", state="unknown", said="the engine does not answer: it hands the limits on"
        )
        return
    try:
        hostlimits.check(host.plan, found)
    except AgentboxError as error:
        yield Row(check=NAME, subject="asked", state="bad", said=error.message, advice=error.hint)
    else:
        asked = host.plan.resources
        said = f"{asked.cpus:g} of {found.cores} cores, {asked.nofile} of {found.nofile} open files"
        yield Row(check=NAME, subject="asked", state="good", said=said, controls=("CIS 5.19",))
    most = min(int(path.read_text(encoding="ascii")) for path in (_PIDS, _THREADS))
    fine = most >= host.plan.resources.pids
    yield Row(
        check=NAME, subject="processes", state="good" if fine else "bad",
        said=f"the kernel has room for {most} processes and threads, the box may have {host.plan.resources.pids}",
        advice="" if fine else "Raise kernel.pid_max and kernel.threads-max, or lower resources.pids.",
    )  # fmt: skip


def _of(host: Host) -> hostlimits.HostLimits | None:
    if not host.contained:
        return hostlimits.of_this_process()
    if host.daemon.state != "answers":
        return None
    cores = int(run(["docker", "info", "--format", "{{.NCPU}}"], doing="ask docker for its cores"))
    return hostlimits.of_docker(cores, host.daemon.host)
