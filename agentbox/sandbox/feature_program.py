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
from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.path_opener import SYSTEM_DIRECTORIES, UNBOUNDED, Boundary, resolve_root
from agentbox.core.paths import Paths
from agentbox.plan.model import Ruleset
from agentbox.sandbox import confinement
from agentbox.sandbox.base_grants import BASE_GRANTS
from agentbox.sandbox.compile import SHARED_MEMORY, TOOLCHAIN
from agentbox.sandbox.seccomp import agent_filter, bpf
from agentbox.sandbox.seccomp.syscalls import Machine

# What maintainer scripts and the image build leave below /var for programs to read.
_GENERATED_PATHS: Final = ("/var/lib/texmf", "/var/cache/fontconfig")
_PACKAGE: Final = (
    Path(__file__).resolve().parent.parent
)  # agentbox: a checkout lies in no toolchain
_TERMINALS: Final = (
    *(PathRule(path, "rwd", recursive=False) for path in ("/dev/ptmx", "/dev/tty")),
    PathRule("/dev/pts", "rlwd"),
)
_USER_PORTS: Final = range(1024, 65536)
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16  # linux/socket.h
_ROUTE = 0  # NETLINK_ROUTE, linux/netlink.h
_STREAM, _DATAGRAM, _SEQUENCED, _KIND = 1, 2, 5, 0xF  # linux/net.h: SOCK_TYPE_MASK
_IP, _TCP, _UDP = 0, 6, 17
_SHARED_MEMORY_CALLS: Final = ("shmget", "shmat", "shmctl", "shmdt")
# A program has no limit that these would step over. Of a thread the number is given, which a filter cannot tell from another
# process: libzmq, which kernels of notebooks talk by, ends when it is refused.
_CPU_CALLS: Final = ("sched_setaffinity", "sched_setscheduler", "sched_setparam")
_MEMORY_CALLS: Final = ("memfd_create",)  # nor a walk that counts its files


def grants(ruleset: Ruleset, paths: Paths, temporary: Path) -> tuple[PathRule, ...]:
    """All paths that it may use. `temporary`: a folder of this start alone."""
    access = "rlwms" if ruleset.sockets else "rlwm"
    executables = {_resolve(paths, path) for path in ruleset.runs}
    directories = [_resolve(paths, place) for place in ruleset.folders]
    return (
        *BASE_GRANTS,
        *(
            PathRule(place, "rlx")
            for place in dict.fromkeys((*TOOLCHAIN, _canonical(paths, paths.app)))
        ),
        *(PathRule(place, "rl") for place in (*_GENERATED_PATHS, str(_PACKAGE))),
        PathRule(str(_PACKAGE.parent), "l"),
        SHARED_MEMORY,
        PathRule(_canonical(paths, temporary), access),
        *(PathRule(place, access + ("x" if place in executables else "")) for place in directories),
        *(PathRule(_resolve(paths, place), access.replace("l", "")) for place in ruleset.unlisted),
        *(PathRule(_resolve(paths, place), "rl") for place in ruleset.reads),
        *(_TERMINALS if executables else ()),
        *(
            PathRule(device, "rlwd")
            for pattern in ruleset.devices
            for device in _expand_devices(pattern)
        ),
        *((PathRule("/sys", "rl"),) if ruleset.devices else ()),
    )


def boundary(paths: Paths, writable_roots: Iterable[str]) -> Boundary:
    """What limits the opening of these paths: links are followed where programs and secrets lie, never where a program or
    an agent writes."""
    writable = (_resolve(paths, root) for root in writable_roots)
    return Boundary(
        link_roots=(*SYSTEM_DIRECTORIES, _canonical(paths, paths.mounted_secrets)),
        writable=tuple(writable),
    )


def bindable_ports(ruleset: Ruleset, box_ports: Iterable[int]) -> tuple[int, ...]:
    """The TCP ports that it may bind. `taken`: all of the box, its own among them."""
    if not ruleset.network:
        return ruleset.listens
    reserved = set(box_ports) - set(ruleset.listens)
    return (0, *(port for port in _USER_PORTS if port not in reserved))


def missing_mechanisms(ruleset: Ruleset, abi: int) -> dict[str, str]:
    """The mechanisms that a kernel with that Landlock ABI cannot hold for it, and why."""
    reasons = confinement.missing_mechanisms(abi)
    if abi < landlock.PORTS_MIN_ABI:
        reasons["network"] = (
            f"Landlock ABI {abi} of this kernel; {landlock.PORTS_MIN_ABI} is needed for ports"
        )
    return reasons


def apply(
    ruleset: Ruleset,
    path_grants: Iterable[PathRule],
    bind_ports: Iterable[int],
    *,
    allow_degraded: Iterable[str] = (),
    path_boundary: Boundary = UNBOUNDED,
    abi_override: int | None = None,
) -> dict[str, str]:
    """Confines this single-threaded process and all that descend from it, for good. Returns what does not hold, and why:
    nothing, unless `allow_degraded` names it. Granted paths are opened `within` that. `known` lowers the ABI, for tests.

    Raises OSError; then the process must not go on: some of it may hold, some not.
    """
    abi = landlock.abi() if abi_override is None else abi_override
    missing, allowed = missing_mechanisms(ruleset, abi), set(allow_degraded)
    if unsupported := [
        f"{name} ({reason})" for name, reason in missing.items() if name not in allowed
    ]:
        raise OSError(errno.ENOTSUP, "this kernel cannot confine " + ", ".join(unsupported))
    kernel.forbid_new_privileges()
    if abi:
        landlock.restrict(
            path_grants, None if ruleset.network else (), abi, bind_ports, path_boundary
        )
    machine = agent_filter.current_machine()
    agent_filter.install(
        build(machine, network=ruleset.network, sockets=ruleset.sockets), with_notify_fd=False
    )
    if abi and not _root_is_unreadable():
        raise OSError(errno.ENOTSUP, "the root folder can be listed though nobody granted it")
    return missing


def build(machine: Machine, *, network: bool, sockets: bool) -> bytes:
    """The filter of a program. `network`: UDP, and the kernel's list of addresses. `sockets`: those of the file system, and
    shared memory of System V."""
    refused, denied = (
        bpf.return_action(bpf.errno_action(errno.EPERM)),
        bpf.return_action(bpf.errno_action(errno.EACCES)),
    )
    unknown, allow = bpf.return_action(bpf.errno_action(errno.ENOSYS)), bpf.return_action(bpf.ALLOW)
    exempt = {*_CPU_CALLS, *(_SHARED_MEMORY_CALLS if sockets else ())}
    rules = {
        **{call: refused for call in agent_filter.REFUSED if call not in exempt},
        **{call: unknown for call in agent_filter.UNKNOWN if call not in _MEMORY_CALLS},
        **{
            call: agent_filter.on_oneself(call, refused)
            for call in agent_filter.ON_ONESELF
            if call not in exempt
        },
        "clone": (*bpf.load_argument(0), *bpf.if_any_bit(agent_filter.NAMESPACES, refused)),
        "clone3": unknown,  # a library falls back to clone, whose flags a filter can read
        "ioctl": (
            *bpf.load_argument(1),
            *bpf.if_equal(agent_filter.TIOCSTI, refused),
            *bpf.if_equal(agent_filter.TIOCLINUX, refused),
        ),
        "socket": (
            *bpf.load_argument(0),
            *(bpf.if_equal(_UNIX, allow) if sockets else ()),
            *(
                bpf.if_equal(
                    _NETLINK, (*bpf.load_argument(2), *bpf.unless_any_of((_ROUTE,), denied), *allow)
                )
                if network
                else ()
            ),
            *bpf.unless_any_of((_INET, _INET6), denied),
            *bpf.load_argument(1, _KIND),
            *bpf.unless_any_of((_STREAM, _DATAGRAM) if network else (_STREAM,), denied),
            *bpf.load_argument(2),
            *bpf.unless_any_of((_IP, _TCP, _UDP), denied),
        ),
    }
    if not sockets:  # a datagram socket of a pair can be sent to a path, and one of type raw is a datagram socket
        rules["socketpair"] = (
            *bpf.load_argument(0),
            *bpf.unless_any_of((_UNIX,), denied),
            *bpf.load_argument(1, _KIND),
            *bpf.unless_any_of((_STREAM, _SEQUENCED), denied),
        )
    if not network:  # TCP Fast Open connects past Landlock
        rules |= {
            call: (*bpf.load_argument(number), *bpf.if_any_bit(agent_filter.FASTOPEN, denied))
            for call, number in agent_filter.SENDING.items()
        }
    numbered = [(machine.number(call), body) for call, body in rules.items()]
    return bpf.assemble(
        [
            bpf.load_architecture(),
            bpf.unless_any_of((machine.audit,), bpf.return_action(bpf.KILL)),
            bpf.load_number(),
            bpf.if_any_bit(machine.other_abi, bpf.return_action(bpf.KILL))
            if machine.other_abi
            else (),
            *(bpf.if_equal(at, (*body, *allow)) for at, body in numbered if at is not None),
            allow,
        ]
    )


def _resolve(paths: Paths, box_path: str) -> str:
    return _canonical(paths, paths.resolve(box_path))


def _canonical(paths: Paths, path: Path) -> str:
    """With the links that the process engine makes as the kernel names them; what lies below them stays as written."""
    return resolve_root(str(path), (str(paths.prefix), str(paths.workspace)))


def _expand_devices(pattern: str) -> list[str]:
    return sorted(glob(pattern)) if pattern.endswith("*") else [pattern]  # noqa: PTH207 - a pattern from the root


def _root_is_unreadable() -> bool:
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return True
    return False
