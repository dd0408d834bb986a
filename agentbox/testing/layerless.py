"""An agent host whose agents lack one layer of their confinement, to see what that layer holds. For tests alone: no plan, option
or variable of a box leads here.

`python -m agentbox.testing.layerless LAYER` is that agent host, `… LAYER FD` its launcher.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agentbox.agents.main import main as agent_host
from agentbox.agents.streams.kind import KindLog
from agentbox.core.linux import landlock
from agentbox.sandbox import confinement
from agentbox.sandbox.launcher import agent_process, launcher
from agentbox.sandbox.launcher.client import Launcher
from agentbox.sandbox.monitor import usage
from agentbox.sandbox.monitor.watchdog import Watchdog
from agentbox.sandbox.seccomp import agent_filter as seccomp
from agentbox.sandbox.seccomp import bpf
from agentbox.sandbox.seccomp.syscalls import Machine
from agentbox.sandbox.syscalls.anonymous import SharedMappings
from agentbox.sandbox.syscalls.buffers import Buffers
from agentbox.sandbox.syscalls.listener import Notice
from agentbox.sandbox.syscalls.polling import Polling
from agentbox.sandbox.syscalls.rulesets import Rulesets
from agentbox.sandbox.syscalls.watching import Watching

_NEVER: Final = 0xFFFFFFFF  # a word that no call is given


def _without_landlock() -> None:
    landlock.restrict = lambda *_: None


def _without_filter() -> None:
    """Calls that the reaper answers still go there; none is refused because of its name or its arguments."""
    _emptied("REFUSED", "UNKNOWN", "ON_ONESELF", "SENDING", "_OF_A_FILE", "BY_REFERENCE", "_UNSHARE")
    _ = seccomp.options
    seccomp.options = lambda *_, **__: bpf.leave(bpf.ALLOW)
    for name in ("TIOCSTI", "TIOCLINUX", "_SETLEASE", "_NOTIFY"):
        _ = getattr(seccomp, name)  # one that is not there takes nothing away
        setattr(seccomp, name, _NEVER)
    build: Callable[..., bytes] = seccomp.build

    def of_one_set(machine: Machine, **more: Any) -> bytes:
        return build(replace(machine, other_abi=0), **more)

    seccomp.build = of_one_set  # type: ignore[assignment]


def _emptied(*names: str) -> None:
    for name in names:
        setattr(seccomp, name, type(getattr(seccomp, name))())


def _without_reaper() -> None:
    """What it would answer is the kernel's to do; what the filter refuses is still refused."""
    _emptied("OF_A_PATH")
    _ = Buffers.check
    Buffers.check = lambda *_: None  # type: ignore[method-assign]
    SharedMappings.map = _goes_on  # type: ignore[assignment, method-assign]
    Watching.make = _goes_on  # type: ignore[assignment, method-assign]
    Watching.add = _goes_on  # type: ignore[assignment, method-assign]
    for name in ("make", "add"):
        setattr(Polling, name, _goes_on)
    for name in ("make", "add", "restrict"):
        setattr(Rulesets, name, _goes_on)
    build: Callable[..., bytes] = seccomp.build

    def of_the_kernel(machine: Machine, **_: Any) -> bytes:
        return build(machine, network=True, forks=False)

    seccomp.build = of_the_kernel  # type: ignore[assignment]


def _goes_on(handler: Any, notice: Notice) -> None:
    handler._listener.go_on(notice)


def _without_limits() -> None:
    """No process of an agent has a limit of its own (setrlimit)."""

    agent_process.lower = lambda *_: None


def _without_watchdog() -> None:
    """Nobody looks at memory and number of processes of a tree."""
    Watchdog.look = lambda *_: iter(())  # type: ignore[method-assign]


def _without_walk() -> None:
    """Folders are walked, and found empty."""
    usage.used = lambda *_: usage.Used()


def _without_keeping() -> None:
    """Agent host keeps all that an agent puts out."""
    make = KindLog.__init__

    def endless(log: KindLog, folder: Path, kind: str, _: int, *most: int) -> None:
        make(log, folder, kind, 1 << 40, *most)

    KindLog.__init__ = endless  # type: ignore[assignment, method-assign]


def _without_sharing() -> None:
    """A thread may have descriptors of its own."""
    _emptied("_UNSHARE")


LAYERS: Final[Mapping[str, Callable[[], None]]] = {
    "landlock": _without_landlock, "seccomp": _without_filter, "reaper": _without_reaper,
}  # fmt: skip
BOUNDS: Final[Mapping[str, tuple[Callable[[], None], ...]]] = {
    "reaper": (_without_reaper,), "limits": (_without_limits,), "watchdog": (_without_watchdog,), "walk": (_without_walk,),
    "keeping": (_without_keeping,), "sharing": (_without_sharing,),
    "all": (
        _without_reaper, _without_limits, _without_watchdog, _without_walk, _without_keeping, _without_sharing,
    ),
}  # fmt: skip
"""What holds floods; the last is all of them at once, which shows that each flood is one."""


def main(words: list[str]) -> None:
    """Ends with the program's own exit code."""
    layer, *rest = words
    taken = (LAYERS[layer],) if layer in LAYERS else BOUNDS[layer]
    for take in taken:
        take()
    if not rest:
        Launcher.program = ("agentbox.testing.layerless", layer)
        sys.exit(agent_host())
    confinement.held = lambda *, network: defaultdict(lambda: True, network=not network)  # its own try is not refused
    launcher.main(rest)


if __name__ == "__main__":
    main(sys.argv[1:])
