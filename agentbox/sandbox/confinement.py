"""The confinement of one agent as plain data, and its application: first the filter,
then Landlock.
"""

import ctypes
import errno
import os
import socket
import stat
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from agentbox.core.frozen import frozen
from agentbox.core.linux import kernel, landlock
from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.path_opener import Boundary
from agentbox.sandbox.launcher import preopened
from agentbox.sandbox.seccomp import agent_filter, installation

ABI_SIGNALS: Final = landlock.SCOPES_MIN_ABI
ABI_FILES: Final = landlock.DEVICES_MIN_ABI
# 192.0.2.1 (RFC 5737, documentation only), port 0, which is never granted; struct sockaddr_in
_UNROUTABLE_ADDRESS: Final = struct.pack("=H", socket.AF_INET) + struct.pack(
    ">H4s8x", 0, bytes((192, 0, 2, 1))
)
_libc = ctypes.CDLL(None, use_errno=True)


@frozen
class Confinement:
    """`grants`: all paths that may be used. `ports`: TCP ports that may be connected to, on any
    address; None = any network.

    Unless that is None: `door` is the port of 127.0.0.1 where the gateway listens, 0 for none;
    `closed_ports` belong to the box, and the agent may neither bind nor connect to them;
    `target_ports` are those of the operator's services on loopback, running or not: the same
    applies. The agent may run its own servers on loopback. `closed`, `own`, `written`: as in
    Boundary, within which each path is opened.
    """

    grants: tuple[PathRule, ...] = ()
    ports: tuple[int, ...] | None = ()
    door: int = 0
    closed_ports: tuple[int, ...] = ()
    target_ports: tuple[int, ...] = ()
    allow_degraded: tuple[str, ...] = ()  # mechanisms that this kernel may lack
    closed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def boundary(self) -> Boundary:
        """A grant to create entries also allows links to be created."""
        creatable = (grant.path for grant in self.grants if "m" in grant.letters)
        return Boundary(
            protected=self.closed, exempt=self.own, writable=(*self.written, *creatable)
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict` and JSON."""
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
    """The mechanisms that a kernel with that Landlock ABI cannot enforce, with the reason."""
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
    """Builds the default filter and opens the system paths, so that the forks of this process
    inherit them. Raises OSError if there is no filter.
    """
    preopened.system_paths()
    for forks in (True, False):  # by keyword as in `apply`, or the cache key differs
        agent_filter.build(installation.current_machine(), network=False, forks=forks)


def probe_enforcement(*, network: bool) -> dict[str, bool]:
    """What is refused when this process tries it: a directory without a grant, its parent process,
    a socket; unless any `network` may be used, an address too.
    """
    return {
        "network": not network and _is_refused(_try_connect),
        "paths": _is_refused(lambda: os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))),
        "attributes": _is_refused(_rewrite_root_mode),
        "signals": _is_refused(lambda: os.kill(os.getppid(), 0)),
        "sockets": _is_refused(lambda: socket.socket(socket.AF_UNIX).close()),
    }


def _rewrite_root_mode() -> None:
    """Sets the mode of `/` to its own value. Without pathlib: few imports."""
    os.chmod("/", stat.S_IMODE(os.stat("/").st_mode))  # noqa: PTH101, PTH116


def _try_connect() -> None:
    # The address is refused, whatever the descriptor: one call less than with a socket.
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
    """Irrevocably confines this single-threaded process and its descendants; returns the Landlock
    ABI in use and the notification descriptor. Parameters as in `install_filter` and
    `restrict_paths`.

    Raises OSError; then the process must exit, since only some of the rules may be in force.
    """
    notify_fd = install_filter(network=confinement.ports is None, forks=forks)
    return restrict_paths(confinement, abi_override), notify_fd


def install_filter(*, network: bool, forks: bool) -> int:
    """Returns the descriptor on which calls wait for the reaper; a call blocks until it is
    answered. `network`: any network may be used. `forks`: process creation is such a call. Raises
    OSError.
    """
    # Capabilities of root allow to set the clock, network interfaces, limits and priorities. The
    # one that is kept opens files of other users, where Landlock allows it. In a container there is
    # none.
    kernel.drop_capabilities_except(kernel.DAC_OVERRIDE)
    return installation.install(
        agent_filter.build(installation.current_machine(), network=network, forks=forks)
    )


def restrict_paths(confinement: Confinement, abi_override: int | None = None) -> int:
    """Restricts paths, ports and signals; returns the Landlock ABI in use. `abi_override` lowers
    it, for tests. Raises OSError.
    """
    abi = landlock.abi() if abi_override is None else abi_override
    if unsupported := [
        f"{name} ({reason})"
        for name, reason in missing_mechanisms(abi).items()
        if name not in confinement.allow_degraded
    ]:
        raise OSError(errno.ENOTSUP, "this kernel cannot confine " + ", ".join(unsupported))
    if abi:
        # The reaper makes all allowed connections for the agent: the kernel permits none.
        ports = None if confinement.ports is None else ()
        landlock.restrict(
            confinement.grants, ports, abi, None, confinement.boundary, preopened.system_paths()
        )
    return abi
