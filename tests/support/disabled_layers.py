"""An agent host whose agents lack one layer of confinement, to see what that layer enforces. For
tests only: no plan, option or variable of a box leads here.

`python -m support.disabled_layers LAYER` is that agent host, `… LAYER FD` its launcher.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agentbox.agents.main import main as agent_host
from agentbox.agents.streams.segment_log import SegmentLog
from agentbox.core.linux import landlock
from agentbox.sandbox import confinement
from agentbox.sandbox.launcher import agent_process, launcher
from agentbox.sandbox.launcher.client import LauncherClient
from agentbox.sandbox.monitor import disk_usage
from agentbox.sandbox.monitor.watchdog import Watchdog
from agentbox.sandbox.seccomp import agent_filter as seccomp
from agentbox.sandbox.seccomp import bpf
from agentbox.sandbox.seccomp.syscalls import AuditArchitecture
from agentbox.sandbox.syscalls.buffers import SocketBuffers
from agentbox.sandbox.syscalls.epoll import EpollHandler
from agentbox.sandbox.syscalls.inotify import InotifyHandler
from agentbox.sandbox.syscalls.notification_fd import Notification
from agentbox.sandbox.syscalls.rulesets import RulesetHandler
from agentbox.sandbox.syscalls.shared_mappings import SharedMappings

_NEVER: Final = 0xFFFFFFFF  # a value that no call uses


def _disable_landlock() -> None:
    landlock.restrict = lambda *_: None


def _disable_filter() -> None:
    """Calls that the reaper handles still reach it; none is denied by its name or arguments."""
    _clear_lists(
        "REFUSED", "UNKNOWN", "ON_ONESELF", "SENDING", "_OF_A_FILE", "BY_REFERENCE", "_UNSHARE"
    )
    _ = seccomp.options
    seccomp.options = lambda *_, **__: bpf.return_action(bpf.ALLOW)
    for name in ("TIOCSTI", "TIOCLINUX", "_SETLEASE", "_NOTIFY"):
        _ = getattr(seccomp, name)  # raises for a missing attribute
        setattr(seccomp, name, _NEVER)
    build: Callable[..., bytes] = seccomp.build

    def build_single_abi(machine: AuditArchitecture, **more: Any) -> bytes:
        return build(replace(machine, other_abi=0), **more)

    seccomp.build = build_single_abi  # type: ignore[assignment]


def _clear_lists(*names: str) -> None:
    for name in names:
        setattr(seccomp, name, type(getattr(seccomp, name))())


def _disable_reaper() -> None:
    """The kernel handles the reaper's calls; what the filter denies is still denied."""
    _clear_lists("OF_A_PATH")
    _ = SocketBuffers.check
    SocketBuffers.check = lambda *_: None  # type: ignore[method-assign]
    SharedMappings.map = _pass_through  # type: ignore[assignment, method-assign]
    InotifyHandler.make = _pass_through  # type: ignore[assignment, method-assign]
    InotifyHandler.add = _pass_through  # type: ignore[assignment, method-assign]
    for name in ("make", "add"):
        setattr(EpollHandler, name, _pass_through)
    for name in ("make", "add", "restrict"):
        setattr(RulesetHandler, name, _pass_through)
    build: Callable[..., bytes] = seccomp.build

    def build_without_reaper(machine: AuditArchitecture, **_: Any) -> bytes:
        return build(machine, network=True, forks=False)

    seccomp.build = build_without_reaper  # type: ignore[assignment]


def _pass_through(handler: Any, notification: Notification) -> None:
    handler._notify_fd.continue_syscall(notification)


def _disable_limits() -> None:
    """Agent processes have no limits of their own (setrlimit)."""

    agent_process.lower_limit = lambda *_: None


def _disable_watchdog() -> None:
    """Memory and number of processes of a tree are not monitored."""
    Watchdog.poll = lambda *_: iter(())  # type: ignore[method-assign]


def _disable_disk_scan() -> None:
    """The disk scanner reports empty directories."""
    disk_usage.measure_usage = lambda *_: disk_usage.DiskUsage()


def _disable_output_bound() -> None:
    """Agent host stores all output of an agent."""
    original = SegmentLog.__init__

    def unbounded(log: SegmentLog, directory: Path, kind: str, _: int, *limits: int) -> None:
        original(log, directory, kind, 1 << 40, *limits)

    SegmentLog.__init__ = unbounded  # type: ignore[assignment, method-assign]


def _disable_descriptor_sharing() -> None:
    """A thread may have its own descriptors."""
    _clear_lists("_UNSHARE")


LAYERS: Final[Mapping[str, Callable[[], None]]] = {
    "landlock": _disable_landlock,
    "seccomp": _disable_filter,
    "reaper": _disable_reaper,
}
BOUNDS: Final[Mapping[str, tuple[Callable[[], None], ...]]] = {
    "reaper": (_disable_reaper,),
    "limits": (_disable_limits,),
    "watchdog": (_disable_watchdog,),
    "walk": (_disable_disk_scan,),
    "keeping": (_disable_output_bound,),
    "sharing": (_disable_descriptor_sharing,),
    "all": (
        _disable_reaper,
        _disable_limits,
        _disable_watchdog,
        _disable_disk_scan,
        _disable_output_bound,
        _disable_descriptor_sharing,
    ),
}
"""The layers that stop floods; the last is all of them at once, which shows that each flood is
effective.
"""


def main(arguments: list[str]) -> None:
    """Exits with the program's exit code."""
    layer, *remaining = arguments
    disablers = (LAYERS[layer],) if layer in LAYERS else BOUNDS[layer]
    for disable in disablers:
        disable()
    if not remaining:
        LauncherClient.program = ("support.disabled_layers", layer)
        sys.exit(agent_host())
    confinement.probe_enforcement = lambda *, network: defaultdict(
        lambda: True, network=not network
    )  # its own test call is not denied
    launcher.main(remaining)


if __name__ == "__main__":
    main(sys.argv[1:])
