"""From a fork of the reaper to the agent's own program: session, a wait for the order, limits, folder, confinement, exec.

Runs in the forked child only."""

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
from agentbox.core.linux.opening import within
from agentbox.sandbox import confinement as confine
from agentbox.sandbox.launcher import preopened, warmup
from agentbox.sandbox.spec import Launch
from agentbox.sandbox.syscalls import desk

REPORT_FD = 3
_HANDOVER_FD = 4
_BLOCK = 1 << 16
NICE = 10
READY = b"r"  # it has been through what it will do, and waits
OOM_SCORE = 500  # the kernel picks an agent before the control plane
# Pending signals and POSIX timers, of which the kernel keeps one sum for each user: with so many pending an agent gets no
# more, and the control plane, whose limit is far above, does.
SIGNALS = 1024
# What the interpreter, the reaper, or whoever started the control plane may have set; exec keeps an ignored signal.
_OURS = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM),
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1),
)


class Stage:
    """The step that runs now, for the report of a failure, and the descriptor that takes the report."""

    name = "session"
    report = -1


def become(*, report: int, handover: int, ahead: bool) -> NoReturn:
    """Turns this forked child into the agent that it is told to be over the socket `handover`; it waits there, and leaves
    when that closes. Does not return: after a failure it writes `{stage, errno, why}` to `report` and exits with 127. A
    successful exec closes `report`. The listener goes out through `handover`, which is closed without it where there is
    none. `ahead`: there is time until the order comes. Then the usual filter is installed before, and it leaves, without
    a word, when it is told to be what needs another."""
    fault: tuple[int, str] = (0, "the set-up stopped")
    Stage.report, launch, filtered = report, None, False
    try:
        _prepare(report, handover)
        orders = socket.socket(fileno=_HANDOVER_FD)
        if ahead:
            filtered = _filter_ahead(orders)
            warmup.of_agent(filtered=filtered)
            json.dumps({"measured": _measure()})
            orders.send(READY)
        launch, shared = _receive_order(orders)
        if filtered and not is_usual(launch):
            os._exit(0)
        Stage.name = "limits"
        apply_limits(launch)
        Stage.name = "cwd"
        _enter(launch)
        Stage.name = "confinement"
        abi = _confine(launch, orders, filtered=filtered)
        if not shared:
            _await_share(orders)
        orders.close()
        confined = _checked(launch, abi)
        # Last: the kernel lets nobody send a descriptor while more than this many of the user's are under way.
        lower(resource.RLIMIT_NOFILE, launch.fds)
        _tell(Stage.report, {"measured": {**_measure(), **confined}})
        Stage.name = "exec"
        _exec(launch)
    except (OSError, ValueError) as error:
        fault = (getattr(error, "errno", 0) or 0, _why(error, launch))
    finally:  # reached after a failure only: exec does not come back
        _tell(Stage.report, {"stage": Stage.name, "errno": fault[0], "why": fault[1]})
        os._exit(127)


def _prepare(report: int, handover: int) -> None:
    """What is the same for every agent."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    for number in _OURS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # A keeper that is killed takes its leader along; the launcher, a subreaper too, ends what is left.
    kernel.signal_me_when_parent_dies(signal.SIGKILL)
    Stage.name = "privileges"
    kernel.forbid_new_privileges()
    os.umask(0o022)
    Stage.name = "limits"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lower(resource.RLIMIT_SIGPENDING, SIGNALS)
    _be_picked_first()
    Stage.name = "stdio"
    # Moved above both first: one may sit at the number that the other is about to take.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HANDOVER_FD + 1) for fd in (report, handover)]
    for fixed, fd in zip((REPORT_FD, _HANDOVER_FD), high, strict=True):
        os.dup2(fd, fixed, inheritable=False)
    Stage.report = REPORT_FD
    _close_others()


def _filter_ahead(orders: socket.socket) -> bool:
    """False where it cannot be done, as will be told when it matters."""
    try:
        listener = confine.install_filter(network=False, forks=True)
    except OSError:
        orders.send(b"x")
        return False
    desk.hand_over(orders, listener)
    os.close(listener)  # the reaper alone answers
    return True


def is_usual(launch: Launch) -> bool:
    """Whether its filter is the one that is installed ahead."""
    return launch.confinement is not None and launch.confinement.ports is not None and launch.pids > 0


def hand_order(to: socket.socket, line: bytes, stdio: tuple[int, int, int]) -> None:
    """The keeper's side: what to be, and its three streams. Raises OSError when it is gone."""
    if rest := line[socket.send_fds(to, [line], stdio) :]:  # or it is told all, and may have gone on and closed its end
        to.sendall(rest)


def _receive_order(orders: socket.socket) -> tuple[Launch, bool]:
    """What to be, and whether the word of `_await_share` came with it."""
    line, fds, _, _ = socket.recv_fds(orders, _BLOCK, 3, socket.MSG_CMSG_CLOEXEC)
    while line and b"\n" not in line:
        more = orders.recv(_BLOCK)
        line = line + more if more else b""
    if not line:  # nobody needs it any more
        os._exit(0)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        if fd > _HANDOVER_FD:
            os.close(fd)
    line, _, after = line.partition(b"\n")
    return Launch.from_line(line), bool(after)


def _close_others() -> None:
    """But for what was opened ahead, which the exec closes."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    kept = [fd for fd in preopened.of_system().descriptors if _HANDOVER_FD < fd < most]
    for below, above in pairwise((_HANDOVER_FD, *kept, most)):
        os.closerange(below + 1, above)


def apply_limits(launch: Launch) -> None:
    """Hard limits of each process of the tree but that of files; no process can raise them again."""
    lower(resource.RLIMIT_DATA, launch.memory)
    lower(resource.RLIMIT_FSIZE, launch.file_size)


def lower(kind: int, value: int) -> None:
    """For good; 0 is no limit."""
    if value:
        ceiling = resource.getrlimit(kind)[1]
        lowered = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(kind, (lowered, lowered))


def _be_picked_first() -> None:
    score = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    os.write(score, b"%d" % max(OOM_SCORE, int(os.read(score, 16))))
    os.close(score)


def share_of_processor(launch: Launch, pid: int) -> None:
    """As many CPUs as `cpu` rounded up, and a nice value: of the agent, whose filter refuses it, and of a keeper that it
    keeps busy. Raises OSError."""
    allowed = sorted(os.sched_getaffinity(pid))
    count = math.ceil(launch.cpu)
    if 0 < count < len(allowed):
        os.sched_setaffinity(pid, {allowed[(pid + step) % len(allowed)] for step in range(count)})
    os.setpriority(os.PRIO_PROCESS, pid, max(NICE, os.getpriority(os.PRIO_PROCESS, pid)))


def _measure() -> dict[str, Any]:
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
    """From here on every rule holds for this process too. Returns the ABI of Landlock in use."""
    confinement = launch.confinement
    if confinement is None:
        return 0
    if not filtered:
        listener = confine.install_filter(network=confinement.ports is None, forks=launch.pids > 0)
        desk.hand_over(orders, listener)
        os.close(listener)  # the reaper alone answers
    return confine.restrict_paths(confinement)


def _checked(launch: Launch, abi: int) -> dict[str, Any]:
    """What holds. What did not take, though it should, ends the start."""
    if launch.confinement is None:
        return {}
    network = launch.confinement.ports is None
    held, lacking = confine.held(network=network), confine.missing(abi)
    if not (
        held["sockets"]
        and (held["network"] or network)
        and held["attributes"]
        and (held["paths"] or "filesystem" in lacking)
        and (held["signals"] or "signals" in lacking)
    ):
        raise OSError(errno.ENOTSUP, f"the kernel took the rules and does not hold them: {held}")
    return {"landlock": abi, "held": held}


def _await_share(orders: socket.socket) -> None:
    """Until the keeper has set its share of the processor."""
    if not orders.recv(1):
        os._exit(0)


def _enter(launch: Launch) -> None:
    os.chdir(launch.cwd)
    here = os.getcwd()  # noqa: PTH109 - what the kernel says after the fact: links are resolved
    if not any(within(here, root) for root in launch.roots):
        raise PermissionError(errno.EACCES, f"{here} is outside of the folders that an agent may start in")


def _exec(launch: Launch) -> NoReturn:
    fault: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in _candidates(launch.argv[0], launch.env):
        try:
            os.execve(path, launch.argv, dict(launch.env))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            fault = error
    raise fault


def _candidates(name: str, env: Mapping[str, str]) -> list[str]:
    if "/" in name:
        return [name]
    return [f"{folder or '.'}/{name}" for folder in env.get("PATH", "").split(":")]


def _why(error: Exception, launch: Launch | None) -> str:
    what = {"cwd": launch.cwd, "exec": launch.argv[0]}.get(Stage.name, Stage.name) if launch else Stage.name
    text = getattr(error, "strerror", None) or str(error)
    return f"{what}: {text}"


def _tell(fd: int, message: Mapping[str, Any]) -> None:
    os.write(fd, json.dumps(message).encode() + b"\n")
