"""An agent host whose agents lack one layer of their confinement, to see what that layer holds. For tests alone: no plan, option
or variable of a box leads here.

`python -m agentbox.testing.layerless LAYER` is that agent host, `… LAYER FD` its launcher.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from agentbox.agents.main import main as agent_host
from agentbox.sandbox import confine, landlock, launcher, seccomp
from agentbox.sandbox.client import Launcher
from agentbox.sandbox.syscalls import Machine

_NEVER: Final = 0xFFFFFFFF  # a word that no call is given


def _without_landlock() -> None:
    landlock.restrict = lambda *_: None


def _without_filter() -> None:
    """Calls that the reaper answers still go there; none is refused because of its name or its arguments."""
    _emptied("REFUSED", "UNKNOWN", "ON_ONESELF", "_SENDING", "_OF_A_FILE")
    for name in ("_TIOCSTI", "_TIOCLINUX", "_SETLEASE", "_NOTIFY", "_DATAGRAM"):
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
    build: Callable[..., bytes] = seccomp.build

    def of_the_kernel(machine: Machine, **_: Any) -> bytes:
        return build(machine, network=True, forks=False)

    seccomp.build = of_the_kernel  # type: ignore[assignment]


LAYERS: Final[Mapping[str, Callable[[], None]]] = {
    "landlock": _without_landlock, "seccomp": _without_filter, "reaper": _without_reaper,
}  # fmt: skip


def main(words: list[str]) -> None:
    """Ends with the program's own exit code."""
    layer, *rest = words
    if not rest:
        Launcher.program = ("agentbox.testing.layerless", layer)
        sys.exit(agent_host())
    confine.held = lambda *, network: defaultdict(lambda: True, network=not network)  # its own try is not refused
    LAYERS[layer]()
    launcher.main(rest)


if __name__ == "__main__":
    main(sys.argv[1:])
