"""From a fork of the reaper to the agent's own program: session, launch order, limits, working
directory, confinement, exec.

Runs in the forked child only.
"""

import errno
import fcntl
import json
import math
import os
import resource
import signal
import socket
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NoReturn

from agentbox.core.linux import kernel
from agentbox.core.linux.path_opener import is_within
from agentbox.sandbox import confinement as confine
from agentbox.sandbox.launcher import preopened, warmup
from agentbox.sandbox.spec import Launch
from agentbox.sandbox.syscalls import notification_server

REPORT_FD = 3
_HANDOVER_FD = 4
_BLOCK = 1 << 16
READY = b"r"  # the warm-up is done and the process waits
OOM_SCORE = 500  # the OOM killer picks an agent before the control plane
# RLIMIT_SIGPENDING: the kernel counts pending signals and POSIX timers per user. An agent that
# reaches this limit gets no more; the control plane, whose limit is far higher, still does.
MAX_PENDING_SIGNALS = 1024
# Signals that the interpreter, the reaper or the parent of the control plane may have changed; an
# ignored signal stays ignored across exec.
_RESET_SIGNALS = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM),
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1),
)


class StartProgress:
    """The current step and the descriptor for the report, used when a failure is reported."""

    name = "session"
    report_fd = -1


def run(*, report_fd: int, handover_fd: int, preforked: bool) -> NoReturn:
    """Turns this forked child into the agent that is ordered over the socket `handover_fd`; exits
    when that socket closes. Does not return: on failure it writes `{stage, errno, why}` to
    `report_fd` and exits with 127. A successful exec closes `report_fd`. The notification
    descriptor is sent through `handover_fd`, which is closed without it if there is none.
    `preforked`: the order comes later. Then the default filter is installed ahead of the order, and
    the process exits silently if the order needs another filter.
    """
    failure: tuple[int, str] = (0, "the setup was interrupted")
    StartProgress.report_fd, launch, filtered = report_fd, None, False
    try:
        _prepare(report_fd, handover_fd)
        orders = socket.socket(fileno=_HANDOVER_FD)
        if preforked:
            filtered = _install_early_filter(orders)
            warmup.warm_agent(filtered=filtered)
            json.dumps({"measured": _read_back_limits()})
            orders.send(READY)
        launch, share_set = _receive_order(orders)
        if filtered and not uses_default_filter(launch):
            os._exit(0)
        StartProgress.name = "limits"
        apply_limits(launch)
        StartProgress.name = "cwd"
        _change_directory(launch)
        StartProgress.name = "confinement"
        abi = _confine(launch, orders, filtered=filtered)
        if not share_set:
            _await_cpu_share(orders)
        orders.close()
        enforcement = _check_enforcement(launch, abi)
        # Last: the kernel refuses to send a descriptor while more than this many of the user's
        # descriptors are in flight.
        lower_limit(resource.RLIMIT_NOFILE, launch.fds)
        _send_report(StartProgress.report_fd, {"measured": {**_read_back_limits(), **enforcement}})
        StartProgress.name = "exec"
        _exec(launch)
    except (OSError, ValueError) as error:
        failure = (getattr(error, "errno", 0) or 0, _describe_failure(error, launch))
    finally:  # reached only on failure: exec does not return
        _send_report(
            StartProgress.report_fd,
            {"stage": StartProgress.name, "errno": failure[0], "why": failure[1]},
        )
        os._exit(127)


def _prepare(report_fd: int, handover_fd: int) -> None:
    """The steps that are the same for every agent."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    for number in _RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # If the reaper is killed, its leader is killed too; the launcher, also a subreaper, ends the
    # rest.
    kernel.set_parent_death_signal(signal.SIGKILL)
    StartProgress.name = "privileges"
    kernel.forbid_new_privileges()
    os.umask(0o022)
    StartProgress.name = "limits"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lower_limit(resource.RLIMIT_SIGPENDING, MAX_PENDING_SIGNALS)
    _raise_oom_score()
    StartProgress.name = "stdio"
    # Moved above both first: one may already have the number that the other needs.
    moved_fds = [
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HANDOVER_FD + 1) for fd in (report_fd, handover_fd)
    ]
    for target, fd in zip((REPORT_FD, _HANDOVER_FD), moved_fds, strict=True):
        os.dup2(fd, target, inheritable=False)
    StartProgress.report_fd = REPORT_FD
    _close_other_fds()


def _install_early_filter(orders: socket.socket) -> bool:
    """False if it cannot be installed; the start then installs it and reports the error."""
    try:
        notify_fd = confine.install_filter(network=False, forks=True)
    except OSError:
        orders.send(b"x")
        return False
    notification_server.send_notify_fd(orders, notify_fd)
    os.close(notify_fd)  # only the reaper answers
    return True


def uses_default_filter(launch: Launch) -> bool:
    """Whether the launch uses the filter that is installed ahead."""
    return (
        launch.confinement is not None and launch.confinement.ports is not None and launch.pids > 0
    )


def send_order(sock: socket.socket, line: bytes, stdio: tuple[int, int, int]) -> None:
    """The reaper's side: sends the launch order and the three streams. Raises OSError if the
    process has exited.
    """
    if unsent := line[
        socket.send_fds(sock, [line], stdio) :
    ]:  # otherwise the process has the whole order and may have closed its end
        sock.sendall(unsent)


def _receive_order(orders: socket.socket) -> tuple[Launch, bool]:
    """The launch, and whether the byte of `_await_cpu_share` came with it."""
    line, fds, _, _ = socket.recv_fds(orders, _BLOCK, 3, socket.MSG_CMSG_CLOEXEC)
    while line and b"\n" not in line:
        chunk = orders.recv(_BLOCK)
        line = line + chunk if chunk else b""
    if not line:  # the reaper closed the socket: no agent is needed
        os._exit(0)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        if fd > _HANDOVER_FD:
            os.close(fd)
    line, _, trailing = line.partition(b"\n")
    return Launch.from_line(line), bool(trailing)


def _close_other_fds() -> None:
    """Closes all descriptors but the preopened ones, which exec closes."""
    fd_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    preopened_fds = [
        fd for fd in preopened.system_paths().descriptors if _HANDOVER_FD < fd < fd_limit
    ]
    for lower_fd, upper_fd in pairwise((_HANDOVER_FD, *preopened_fds, fd_limit)):
        os.closerange(lower_fd + 1, upper_fd)


def apply_limits(launch: Launch) -> None:
    """Sets the hard limits of each process of the tree, except RLIMIT_NOFILE; no process can raise
    them.
    """
    lower_limit(resource.RLIMIT_DATA, launch.memory)
    lower_limit(resource.RLIMIT_FSIZE, launch.file_size)


def lower_limit(kind: int, value: int) -> None:
    """Lowers the soft and the hard limit; 0 means no limit."""
    if value:
        hard_limit = resource.getrlimit(kind)[1]
        new_limit = value if hard_limit == resource.RLIM_INFINITY else min(value, hard_limit)
        resource.setrlimit(kind, (new_limit, new_limit))


def _raise_oom_score() -> None:
    score_fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    os.write(score_fd, b"%d" % max(OOM_SCORE, int(os.read(score_fd, 16))))
    os.close(score_fd)


def set_cpu_share(launch: Launch, pid: int, seed: int | None = None) -> None:
    """Sets the CPU affinity (`cpu` rounded up) and the nice value: of the agent, whose filter
    refuses these calls, and of a reaper that its agent keeps busy. Processes with one `seed` have
    the same CPUs; it is the pid by default. Raises OSError.
    """
    allowed = sorted(os.sched_getaffinity(pid))
    count, first = math.ceil(launch.cpu), pid if seed is None else seed
    if 0 < count < len(allowed):
        os.sched_setaffinity(pid, {allowed[(first + step) % len(allowed)] for step in range(count)})
    os.setpriority(os.PRIO_PROCESS, pid, max(launch.nice, os.getpriority(os.PRIO_PROCESS, pid)))


def _read_back_limits() -> dict[str, Any]:
    return {
        "data": resource.getrlimit(resource.RLIMIT_DATA)[1],
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "fsize": resource.getrlimit(resource.RLIMIT_FSIZE)[1],
        "cpus": len(os.sched_getaffinity(0)),
        "nice": os.nice(0),
        "no_new_privs": kernel.new_privileges_forbidden(),
        "uid": os.geteuid(),
    }


def _confine(launch: Launch, orders: socket.socket, *, filtered: bool) -> int:
    """Applies all rules to this process. Returns the Landlock ABI in use."""
    confinement = launch.confinement
    if confinement is None:
        return 0
    if not filtered:
        notify_fd = confine.install_filter(network=confinement.ports is None, forks=launch.pids > 0)
        notification_server.send_notify_fd(orders, notify_fd)
        os.close(notify_fd)  # the reaper alone answers
    return confine.restrict_paths(confinement)


def _check_enforcement(launch: Launch, abi: int) -> dict[str, Any]:
    """Returns what is enforced. Raises OSError if a rule did not take effect though it
    should have.
    """
    if launch.confinement is None:
        return {}
    network = launch.confinement.ports is None
    enforced, missing = confine.probe_enforcement(network=network), confine.missing_mechanisms(abi)
    if not (
        enforced["sockets"]
        and (enforced["network"] or network)
        and enforced["attributes"]
        and (enforced["paths"] or "filesystem" in missing)
        and (enforced["signals"] or "signals" in missing)
    ):
        raise OSError(
            errno.ENOTSUP, f"the kernel accepted the rules but does not enforce them: {enforced}"
        )
    return {"landlock": abi, "held": enforced}


def _await_cpu_share(orders: socket.socket) -> None:
    """Waits until the reaper has set the CPU share."""
    if not orders.recv(1):
        os._exit(0)


def _change_directory(launch: Launch) -> None:
    os.chdir(launch.cwd)
    cwd = os.getcwd()  # noqa: PTH109 - with links resolved by the kernel
    if not any(is_within(cwd, root) for root in launch.roots):
        raise PermissionError(errno.EACCES, f"{cwd} is not in a directory where an agent may start")


def _exec(launch: Launch) -> NoReturn:
    failure: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in _executable_candidates(launch.argv[0], launch.env):
        try:
            os.execve(path, launch.argv, dict(launch.env))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            failure = error
    raise failure


def _executable_candidates(name: str, env: Mapping[str, str]) -> list[str]:
    if "/" in name:
        return [name]
    return [f"{directory or '.'}/{name}" for directory in env.get("PATH", "").split(":")]


def _describe_failure(error: Exception, launch: Launch | None) -> str:
    subject = (
        {"cwd": launch.cwd, "exec": launch.argv[0]}.get(StartProgress.name, StartProgress.name)
        if launch
        else StartProgress.name
    )
    text = getattr(error, "strerror", None) or str(error)
    return f"{subject[:200]}: {text}"


def _send_report(fd: int, message: Mapping[str, Any]) -> None:
    os.write(fd, json.dumps(message).encode() + b"\n")
