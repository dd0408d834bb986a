"""What the kernel is told about one agent, as plain data, and the telling: the filter first, then Landlock."""

import ctypes
import errno
import os
import socket
import stat
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from agentbox.core.linux import kernel, landlock
from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.path_opener import Boundary
from agentbox.sandbox.launcher import preopened
from agentbox.sandbox.seccomp import agent_filter

ABI_SIGNALS: Final = landlock.SCOPES_MIN_ABI
ABI_FILES: Final = landlock.DEVICES_MIN_ABI
# 192.0.2.1 of RFC 5737, which is nobody's, at port 0, which nobody is granted; struct sockaddr_in
_UNROUTABLE_ADDRESS: Final = struct.pack("=H", socket.AF_INET) + struct.pack(
    ">H4s8x", 0, bytes((192, 0, 2, 1))
)
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """`grants`: all paths that may be used. `ports`: those that TCP may connect to, on any address; None = any network.

    Unless that is None: `door` is the port of 127.0.0.1 where the gateway listens, 0 for none; `closed_ports` are the
    box's own, which the agent may neither take nor reach, and `target_ports` those of loopback where the operator's services
    are, or would be if they were not down: the same. Besides, it may serve itself on loopback. `closed`, `own`,
    `written`: as in Boundary, which each path is opened within.
    """

    grants: tuple[PathRule, ...] = ()
    ports: tuple[int, ...] | None = ()
    door: int = 0
    closed_ports: tuple[int, ...] = ()
    target_ports: tuple[int, ...] = ()
    allow_degraded: tuple[str, ...] = ()  # mechanisms that this kernel may be unable to hold
    closed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def boundary(self) -> Boundary:
        """A grant to make entries lets links be made too."""
        creatable = (grant.path for grant in self.grants if "m" in grant.letters)
        return Boundary(
            protected=self.closed, exempt=self.own, writable=(*self.written, *creatable)
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `dataclasses.asdict` and JSON made of it."""
        ports = data["ports"]
        return cls(
            grants=tuple(PathRule(*grant) for grant in data["grants"]),
            ports=None if ports is None else tuple(ports),
            door=data["door"],
            **{
                name: tuple(data[name])
                for name in (
                    "closed_ports",
                    "target_ports",
                    "allow_degraded",
                    "closed",
                    "own",
                    "written",
                )
            },
        )


def missing_mechanisms(abi: int) -> dict[str, str]:
    """The mechanisms that a kernel with that Landlock ABI cannot hold, and why."""
    reasons = {}
    if abi < ABI_FILES:
        reasons["filesystem"] = (
            f"Landlock ABI {abi} of this kernel; {ABI_FILES} is needed for truncation and devices"
        )
    if abi < ABI_SIGNALS:
        reasons["signals"] = (
            f"Landlock ABI {abi} of this kernel; {ABI_SIGNALS} is needed for signals"
        )
    return reasons


def prepare() -> None:
    """Makes the usual filter and opens the system's paths ahead, so that the forks of this process have them. Raises OSError
    where there is no filter."""
    preopened.system_paths()
    for forks in (True, False):  # named as `apply` names it, or the cache has another key
        agent_filter.build(agent_filter.current_machine(), network=False, forks=forks)


def probe_enforcement(*, network: bool) -> dict[str, bool]:
    """What this process finds refused when it tries: a folder that nobody is granted, its parent, a socket; unless it may
    use any `network`, an address too."""
    return {
        "network": not network and _is_refused(_try_connect),
        "paths": _is_refused(lambda: os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))),
        "attributes": _is_refused(lambda: os.chmod("/", stat.S_IMODE(os.stat("/").st_mode))),  # noqa: PTH101, PTH116 - few imports
        "signals": _is_refused(lambda: os.kill(os.getppid(), 0)),
        "sockets": _is_refused(lambda: socket.socket(socket.AF_UNIX).close()),
    }


def _try_connect() -> None:
    # Refused by where it leads, whatever the descriptor: one call, where a socket of its own would be one more.
    if _libc.connect(-1, _UNROUTABLE_ADDRESS, len(_UNROUTABLE_ADDRESS)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _is_refused(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except PermissionError:
        return True
    return False


def apply(
    confinement: Confinement, abi_override: int | None = None, *, forks: bool = True
) -> tuple[int, int]:
    """Confines this single-threaded process and all that descend from it, for good; returns the Landlock ABI in use and
    the listener. Arguments as for `install_filter` and `restrict_paths`.

    Raises OSError; then the process must not go on: some of it may hold, some not.
    """
    notify_fd = install_filter(network=confinement.ports is None, forks=forks)
    return restrict_paths(confinement, abi_override), notify_fd


def install_filter(*, network: bool, forks: bool) -> int:
    """The listener, where calls wait for the reaper. Until somebody answers there, such a call waits. `network`: any may be
    used. `forks`: the making of a process is such a call. Raises OSError."""
    # Root's would set the clock, the network's interfaces, the limits and the turns of all. The one that is left opens
    # files of others, where Landlock lets it. In a container there is none.
    kernel.drop_capabilities_except(kernel.DAC_OVERRIDE)
    return agent_filter.install(
        agent_filter.build(agent_filter.current_machine(), network=network, forks=forks)
    )


def restrict_paths(confinement: Confinement, abi_override: int | None = None) -> int:
    """Paths, ports and signals: the Landlock ABI in use. `known` lowers it, for tests. Raises OSError."""
    abi = landlock.abi() if abi_override is None else abi_override
    if unsupported := [
        f"{name} ({reason})"
        for name, reason in missing_mechanisms(abi).items()
        if name not in confinement.allow_degraded
    ]:
        raise OSError(errno.ENOTSUP, "this kernel cannot confine " + ", ".join(unsupported))
    if abi:
        # Whatever it may reach the reaper reaches for it: the kernel lets no connection of its own through.
        ports = None if confinement.ports is None else ()
        landlock.restrict(
            confinement.grants, ports, abi, None, confinement.boundary, preopened.system_paths()
        )
    return abi
