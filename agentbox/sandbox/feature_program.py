"""What the kernel is told about the program of a feature, and the telling: Landlock, then a filter that asks nobody.

As an agent's, but for what a reaper would have to answer: no process stands beside a program (ADR 0033). What it may use
is a `Ruleset` of the plan, whose paths are those of the box; `grants` says where they lie here.
"""

import errno
import os
from collections.abc import Iterable
from glob import glob
from pathlib import Path
from typing import Final

from agentbox.core.linux import kernel, landlock
from agentbox.core.linux.landlock import Grant
from agentbox.core.linux.opening import SYSTEM, UNBOUNDED, Boundary, settled
from agentbox.core.paths import Paths
from agentbox.plan.model import Ruleset
from agentbox.sandbox import confinement
from agentbox.sandbox.always import ALWAYS
from agentbox.sandbox.compile import SHARED_MEMORY, TOOLCHAIN
from agentbox.sandbox.seccomp import agent_filter, bpf
from agentbox.sandbox.seccomp.syscalls import Machine

# What maintainer scripts and the image build leave below /var for programs to read.
_MADE: Final = ("/var/lib/texmf", "/var/cache/fontconfig")
_PACKAGE: Final = Path(__file__).resolve().parent.parent  # agentbox: a checkout lies in no toolchain
_TERMINALS: Final = (
    *(Grant(path, "rwd", below=False) for path in ("/dev/ptmx", "/dev/tty")),
    Grant("/dev/pts", "rlwd"),
)
_USER_PORTS: Final = range(1024, 65536)
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16  # linux/socket.h
_ROUTE = 0  # NETLINK_ROUTE, linux/netlink.h
_STREAM, _DATAGRAM, _SEQUENCED, _KIND = 1, 2, 5, 0xF  # linux/net.h: SOCK_TYPE_MASK
_IP, _TCP, _UDP = 0, 6, 17
_SHARED_MEMORY_CALLS: Final = ("shmget", "shmat", "shmctl", "shmdt")
# A program has no limit that these would step over. Of a thread the number is given, which a filter cannot tell from another
# process: libzmq, which kernels of notebooks talk by, ends when it is refused.
_OWN_PROCESSORS: Final = ("sched_setaffinity", "sched_setscheduler", "sched_setparam")
_OWN_MEMORY: Final = ("memfd_create",)  # nor a walk that counts its files


def grants(ruleset: Ruleset, paths: Paths, temporary: Path) -> tuple[Grant, ...]:
    """All paths that it may use. `temporary`: a folder of this start alone."""
    makes = "rlwms" if ruleset.sockets else "rlwm"
    runs = {_at(paths, place) for place in ruleset.runs}
    places = [_at(paths, place) for place in ruleset.folders]
    return (
        *ALWAYS,
        *(Grant(place, "rlx") for place in dict.fromkeys((*TOOLCHAIN, _settled(paths, paths.app)))),
        *(Grant(place, "rl") for place in (*_MADE, str(_PACKAGE))),
        Grant(str(_PACKAGE.parent), "l"),
        SHARED_MEMORY,
        Grant(_settled(paths, temporary), makes),
        *(Grant(place, makes + ("x" if place in runs else "")) for place in places),
        *(Grant(_at(paths, place), makes.replace("l", "")) for place in ruleset.unlisted),
        *(Grant(_at(paths, place), "rl") for place in ruleset.reads),
        *(_TERMINALS if runs else ()),
        *(Grant(device, "rlwd") for pattern in ruleset.devices for device in _there(pattern)),
        *((Grant("/sys", "rl"),) if ruleset.devices else ()),
    )


def boundary(paths: Paths, writable_roots: Iterable[str]) -> Boundary:
    """What limits the opening of these paths: links are followed where programs and secrets lie, never where a program or
    an agent writes."""
    written = (_at(paths, root) for root in writable_roots)
    return Boundary(linked=(*SYSTEM, _settled(paths, paths.mounted_secrets)), written=tuple(written))


def ports(ruleset: Ruleset, taken: Iterable[int]) -> tuple[int, ...]:
    """The TCP ports that it may bind. `taken`: all of the box, its own among them."""
    if not ruleset.network:
        return ruleset.listens
    others = set(taken) - set(ruleset.listens)
    return (0, *(port for port in _USER_PORTS if port not in others))


def lacking(ruleset: Ruleset, known: int) -> dict[str, str]:
    """The mechanisms that a kernel with that Landlock ABI cannot hold for it, and why."""
    found = confinement.missing(known)
    if known < landlock.PORTS_SINCE:
        found["network"] = f"Landlock ABI {known} of this kernel; {landlock.PORTS_SINCE} is needed for ports"
    return found


def apply(
    ruleset: Ruleset, granted: Iterable[Grant], bound: Iterable[int], *, allow_degraded: Iterable[str] = (),
    within: Boundary = UNBOUNDED, known: int | None = None,
) -> dict[str, str]:  # fmt: skip
    """Confines this single-threaded process and all that descend from it, for good. Returns what does not hold, and why:
    nothing, unless `allow_degraded` names it. Granted paths are opened `within` that. `known` lowers the ABI, for tests.

    Raises OSError; then the process must not go on: some of it may hold, some not.
    """
    abi = landlock.abi() if known is None else known
    missing, allowed = lacking(ruleset, abi), set(allow_degraded)
    if refused := [f"{name} ({why})" for name, why in missing.items() if name not in allowed]:
        raise OSError(errno.ENOTSUP, "this kernel cannot confine " + ", ".join(refused))
    kernel.forbid_new_privileges()
    if abi:
        landlock.restrict(granted, None if ruleset.network else (), abi, bound, within)
    machine = agent_filter.of_this_machine()
    agent_filter.install(build(machine, network=ruleset.network, sockets=ruleset.sockets), listened=False)
    if abi and not _root_is_closed():
        raise OSError(errno.ENOTSUP, "the root folder can be listed though nobody granted it")
    return missing


def build(machine: Machine, *, network: bool, sockets: bool) -> bytes:
    """The filter of a program. `network`: UDP, and the kernel's list of addresses. `sockets`: those of the file system, and
    shared memory of System V."""
    refused, closed = bpf.leave(bpf.fail(errno.EPERM)), bpf.leave(bpf.fail(errno.EACCES))
    unknown, allow = bpf.leave(bpf.fail(errno.ENOSYS)), bpf.leave(bpf.ALLOW)
    passed = {*_OWN_PROCESSORS, *(_SHARED_MEMORY_CALLS if sockets else ())}
    rules = {
        **{call: refused for call in agent_filter.REFUSED if call not in passed},
        **{call: unknown for call in agent_filter.UNKNOWN if call not in _OWN_MEMORY},
        **{call: agent_filter.on_oneself(call, refused) for call in agent_filter.ON_ONESELF if call not in passed},
        "clone": (*bpf.argument(0), *bpf.when_any_bit(agent_filter.NAMESPACES, refused)),
        "clone3": unknown,  # a library falls back to clone, whose flags a filter can read
        "ioctl": (
            *bpf.argument(1), *bpf.when(agent_filter.TIOCSTI, refused), *bpf.when(agent_filter.TIOCLINUX, refused),
        ),
        "socket": (
            *bpf.argument(0),
            *(bpf.when(_UNIX, allow) if sockets else ()),
            *(bpf.when(_NETLINK, (*bpf.argument(2), *bpf.unless((_ROUTE,), closed), *allow)) if network else ()),
            *bpf.unless((_INET, _INET6), closed),
            *bpf.argument(1, _KIND), *bpf.unless((_STREAM, _DATAGRAM) if network else (_STREAM,), closed),
            *bpf.argument(2), *bpf.unless((_IP, _TCP, _UDP), closed),
        ),
    }  # fmt: skip
    if not sockets:  # a datagram socket of a pair can be sent to a path, and one of type raw is a datagram socket
        rules["socketpair"] = (
            *bpf.argument(0), *bpf.unless((_UNIX,), closed),
            *bpf.argument(1, _KIND), *bpf.unless((_STREAM, _SEQUENCED), closed),
        )  # fmt: skip
    if not network:  # TCP Fast Open connects past Landlock
        rules |= {
            call: (*bpf.argument(at), *bpf.when_any_bit(agent_filter.FASTOPEN, closed))
            for call, at in agent_filter.SENDING.items()
        }
    numbered = [(machine.number(call), body) for call, body in rules.items()]
    return bpf.assemble([
        bpf.architecture(), bpf.unless((machine.audit,), bpf.leave(bpf.KILL)),
        bpf.number(), bpf.when_any_bit(machine.other_abi, bpf.leave(bpf.KILL)) if machine.other_abi else (),
        *(bpf.when(at, (*body, *allow)) for at, body in numbered if at is not None),
        allow,
    ])  # fmt: skip


def _at(paths: Paths, box_path: str) -> str:
    return _settled(paths, paths.at(box_path))


def _settled(paths: Paths, place: Path) -> str:
    """With the links that the process engine makes as the kernel names them; what lies below them stays as written."""
    return settled(str(place), (str(paths.prefix), str(paths.workspace)))


def _there(pattern: str) -> list[str]:
    return sorted(glob(pattern)) if pattern.endswith("*") else [pattern]  # noqa: PTH207 - a pattern from the root


def _root_is_closed() -> bool:
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return True
    return False
