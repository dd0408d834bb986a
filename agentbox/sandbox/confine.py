"""What the kernel is told about one agent, as plain data, and the telling: Landlock first, then the filter."""

import errno
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from agentbox.sandbox import landlock, seccomp
from agentbox.sandbox.landlock import Grant

ABI_SIGNALS: Final = landlock.SCOPES_SINCE
ABI_FILES: Final = landlock.DEVICES_SINCE


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """`grants`: all paths that may be used. `ports`: those that TCP may connect to, on any address; None = any network."""

    grants: tuple[Grant, ...] = ()
    ports: tuple[int, ...] | None = ()
    allow_degraded: tuple[str, ...] = ()  # mechanisms that this kernel may be unable to hold

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `dataclasses.asdict` and JSON made of it."""
        ports = data["ports"]
        return cls(
            grants=tuple(Grant(*grant) for grant in data["grants"]),
            ports=None if ports is None else tuple(ports),
            allow_degraded=tuple(data["allow_degraded"]),
        )


def missing(known: int) -> dict[str, str]:
    """The mechanisms that a kernel with that Landlock ABI cannot hold, and why."""
    found = {}
    if known < ABI_FILES:
        found["filesystem"] = f"Landlock ABI {known} of this kernel; {ABI_FILES} is needed for truncation and devices"
    if known < ABI_SIGNALS:
        found["signals"] = f"Landlock ABI {known} of this kernel; {ABI_SIGNALS} is needed for signals"
    return found


def prepare() -> None:
    """Makes the usual filter ahead, so that the forks of this process have it. Raises OSError where there is none."""
    seccomp.build(seccomp.of_this_machine(), connects=False, network=False)


def held() -> dict[str, bool]:
    """What this process finds refused when it tries: a folder that nobody is granted, its parent, a socket."""
    return {
        "paths": _refused(lambda: os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))),
        "signals": _refused(lambda: os.kill(os.getppid(), 0)),
        "sockets": _refused(lambda: socket.socket(socket.AF_UNIX).close()),
    }


def _refused(what: Callable[[], None]) -> bool:
    try:
        what()
    except PermissionError:
        return True
    return False


def apply(confinement: Confinement, known: int | None = None) -> int:
    """Confines this single-threaded process and all that descend from it, for good; returns the Landlock ABI in use.

    Raises OSError; then the process must not go on: some of it may hold, some not.
    """
    abi = landlock.abi() if known is None else known
    if lacking := [f"{name} ({why})" for name, why in missing(abi).items() if name not in confinement.allow_degraded]:
        raise OSError(errno.ENOTSUP, "this kernel cannot confine " + ", ".join(lacking))
    if abi:
        landlock.restrict(confinement.grants, confinement.ports, abi)
    network = confinement.ports is None
    seccomp.install(seccomp.build(seccomp.of_this_machine(), connects=bool(confinement.ports), network=network))
    return abi
