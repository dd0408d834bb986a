"""Confinement of a feature's program: Landlock, then a filter that needs no reaper.

As for an agent, but without the rules that a reaper would answer: a program has no reaper (ADR
0033). Its rights are a `Ruleset` of the plan, whose paths are those of the box; `grants` maps them
to this host.
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
from agentbox.sandbox.seccomp import agent_filter, bpf, call_sets, installation
from agentbox.sandbox.seccomp.syscalls import AuditArchitecture

# Files below /var that maintainer scripts and the image build generate for programs.
_GENERATED_PATHS: Final = ("/var/lib/texmf", "/var/cache/fontconfig")
_PACKAGE: Final = (
    Path(__file__).resolve().parent.parent
)  # agentbox: a checkout is outside of the toolchain
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
# A program has no limit that these calls would exceed. They take a thread id, which a filter cannot
# tell from another process: libzmq, used by notebook kernels, exits when the call is refused.
_CPU_CALLS: Final = ("sched_setaffinity", "sched_setscheduler", "sched_setparam")
_MEMORY_CALLS: Final = ("memfd_create",)  # nor a disk limit


def grants(ruleset: Ruleset, paths: Paths, temporary: Path) -> tuple[PathRule, ...]:
    """All paths that the program may use. `temporary`: a directory of this start alone."""
    access = "rlwms" if ruleset.sockets else "rlwm"
    executables = {_resolve(paths, path) for path in ruleset.runs}
    directories = [_resolve(paths, path) for path in ruleset.folders]
    return (
        *BASE_GRANTS,
        *(
            PathRule(path, "rlx")
            for path in dict.fromkeys((*TOOLCHAIN, _canonical(paths, paths.app)))
        ),
        *(PathRule(path, "rl") for path in (*_GENERATED_PATHS, str(_PACKAGE))),
        PathRule(str(_PACKAGE.parent), "l"),
        SHARED_MEMORY,
        PathRule(_canonical(paths, temporary), access),
        *(PathRule(path, access + ("x" if path in executables else "")) for path in directories),
        *(PathRule(_resolve(paths, path), access.replace("l", "")) for path in ruleset.unlisted),
        *(PathRule(_resolve(paths, path), "rl") for path in ruleset.reads),
        *(
            PathRule(_resolve(paths, str(path)), "rl")
            for path in (paths.authorities, *_proxy_files(ruleset, paths))
            if path.exists()
        ),
        *(_TERMINALS if executables else ()),
        *(
            PathRule(device, "rlwd")
            for pattern in ruleset.devices
            for device in _expand_devices(pattern)
        ),
        *((PathRule("/sys", "rl"),) if ruleset.devices else ()),
    )


def _proxy_files(ruleset: Ruleset, paths: Paths) -> tuple[Path, ...]:
    """User and password of the proxy are for programs that have secrets already and use the
    network: nobody types into them."""
    secret = str(paths.mounted_secrets)
    has_secrets = any(_resolve(paths, path).startswith(secret) for path in ruleset.reads)
    return (paths.outgoing,) if ruleset.network and has_secrets else ()


def boundary(paths: Paths, writable_roots: Iterable[str]) -> Boundary:
    """The boundary for opening these paths: links are followed where programs and secrets lie,
    never where a program or an agent writes.
    """
    writable = (_resolve(paths, root) for root in writable_roots)
    return Boundary(
        link_roots=(*SYSTEM_DIRECTORIES, _canonical(paths, paths.mounted_secrets)),
        writable=tuple(writable),
    )


def bindable_ports(ruleset: Ruleset, box_ports: Iterable[int]) -> tuple[int, ...]:
    """The TCP ports that the program may bind. `box_ports`: all ports of the box, the program's
    included.
    """
    if not ruleset.network or ruleset.connects:
        return ruleset.listens
    reserved = set(box_ports) - set(ruleset.listens)
    return (0, *(port for port in _USER_PORTS if port not in reserved))


def _connectable_ports(ruleset: Ruleset) -> tuple[int, ...] | None:
    """None for any port."""
    return None if ruleset.network and not ruleset.connects else ruleset.connects


def missing_mechanisms(ruleset: Ruleset, abi: int) -> dict[str, str]:
    """The mechanisms that a kernel with that Landlock ABI cannot enforce for it, with
    the reason.
    """
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
    """Irrevocably confines this single-threaded process and its descendants. Returns what is not
    enforced, with the reason: empty, unless `allow_degraded` permits it. Paths are opened within
    `path_boundary`. `abi_override` lowers the ABI, for tests.

    Raises OSError; then the process must exit, since only some of the rules may be in force.
    """
    abi = landlock.abi() if abi_override is None else abi_override
    missing, allowed = missing_mechanisms(ruleset, abi), set(allow_degraded)
    if unsupported := [
        f"{name} ({reason})" for name, reason in missing.items() if name not in allowed
    ]:
        raise OSError(errno.ENOTSUP, "this kernel cannot confine " + ", ".join(unsupported))
    kernel.forbid_new_privileges()
    if abi:
        landlock.restrict(path_grants, _connectable_ports(ruleset), abi, bind_ports, path_boundary)
    machine = installation.current_machine()
    installation.install(
        build(machine, network=ruleset.network, sockets=ruleset.sockets), with_notify_fd=False
    )
    if abi and not _root_is_unreadable():
        raise OSError(errno.ENOTSUP, "the root directory can be listed without a grant")
    return missing


def build(machine: AuditArchitecture, *, network: bool, sockets: bool) -> bytes:
    """The filter of a program. `network`: UDP, and the kernel's list of addresses. `sockets`: Unix
    sockets in the file system, and System V shared memory.
    """
    refused, denied = (
        bpf.return_action(bpf.errno_action(errno.EPERM)),
        bpf.return_action(bpf.errno_action(errno.EACCES)),
    )
    unknown, allow = bpf.return_action(bpf.errno_action(errno.ENOSYS)), bpf.return_action(bpf.ALLOW)
    exempt = {*_CPU_CALLS, *(_SHARED_MEMORY_CALLS if sockets else ())}
    rules = {
        **{call: refused for call in call_sets.REFUSED if call not in exempt},
        **{call: unknown for call in call_sets.UNKNOWN if call not in _MEMORY_CALLS},
        **{
            call: agent_filter.on_oneself(call, refused)
            for call in call_sets.ON_ONESELF
            if call not in exempt
        },
        "clone": (*bpf.load_argument(0), *bpf.if_any_bit(agent_filter.NAMESPACES, refused)),
        "clone3": unknown,  # libraries fall back to clone, whose flags a filter can read
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
    if not sockets:  # a datagram socket of a pair can send to a path, and type raw means datagram
        rules["socketpair"] = (
            *bpf.load_argument(0),
            *bpf.unless_any_of((_UNIX,), denied),
            *bpf.load_argument(1, _KIND),
            *bpf.unless_any_of((_STREAM, _SEQUENCED), denied),
        )
    if not network:  # TCP Fast Open bypasses Landlock
        rules |= {
            call: (*bpf.load_argument(number), *bpf.if_any_bit(agent_filter.FASTOPEN, denied))
            for call, number in call_sets.SENDING.items()
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
    """Resolves the links that the process engine creates; the rest of the path stays as written."""
    return resolve_root(str(path), (str(paths.prefix), str(paths.workspace)))


def _expand_devices(pattern: str) -> list[str]:
    # The pattern begins at the root.
    return sorted(glob(pattern)) if pattern.endswith("*") else [pattern]  # noqa: PTH207


def _root_is_unreadable() -> bool:
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
    except PermissionError:
        return True
    return False
