"""Warm-up: a waiting process performs the steps of a start once before its order comes.

A forked process shares each page of memory with its parent until one of them writes to it, and
Python writes even on reads: the first time costs several times the second. A warm-up leaves nothing
behind: no rule is in force, no descriptor is open.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from agentbox.core.linux import landlock
from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox import confinement
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import preopened, tree
from agentbox.sandbox.spec import Launch

_GRANTS: Final = tuple(
    PathRule(path, "rlwmxd")
    for path in ("/usr/lib", "/usr/bin", "/lib", "/etc", "/proc", "/dev/null")
)
_LAUNCH: Final = Launch(
    argv=("true",),
    env={"PATH": "/usr/bin"},
    cwd="/",
    roots=("/",),
    confinement=Confinement(grants=_GRANTS),
)


def warm_reaper(serve: Callable[[Confinement], None]) -> None:
    """The reaper's part: reads an order, answers calls as `serve` does for a confinement, reads a
    process. Raises OSError.
    """
    Launch.from_line(_LAUNCH.to_line())
    serve(Confinement(grants=_GRANTS))
    tree.read_process(os.getpid())


def warm_agent(*, filtered: bool) -> None:
    """The agent process's part: reads an order, builds a ruleset, tries what must be refused."""
    launch = Launch.from_line(_LAUNCH.to_line())
    if launch.confinement is not None:
        with suppress(OSError):  # a kernel without Landlock is reported at the start
            system_paths = preopened.system_paths()
            os.close(
                landlock.ruleset(
                    launch.confinement.grants, (), landlock.abi(), preopened=system_paths
                )
            )
    if filtered:
        confinement.probe_enforcement(network=False)
