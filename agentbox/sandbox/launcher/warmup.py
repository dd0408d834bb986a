"""A run of what a start will do, by the process that will do it, while it waits for its order.

A fork shares each page of memory with its parent until one of them writes there, and Python writes wherever it looks: the
first time costs several times the second. Nothing stays of a rehearsal: no rule is in force, no descriptor is open.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentbox.core.linux import landlock
from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox import confinement
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import preopened, tree
from agentbox.sandbox.spec import Launch

if TYPE_CHECKING:
    from agentbox.sandbox.launcher.pending_process import PendingProcess

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


def warm_reaper(pending: "PendingProcess", locks: int) -> None:
    """The keeper's part: reads an order, sets up where calls are answered and answers, looks at a process. Raises OSError."""
    Launch.from_line(_LAUNCH.to_line())
    pending.warm_up(Confinement(grants=_GRANTS), locks)
    tree.read_process(os.getpid())


def warm_agent(*, filtered: bool) -> None:
    """The part of the process that becomes the agent: reads an order, builds a ruleset, tries what must be refused."""
    launch = Launch.from_line(_LAUNCH.to_line())
    if launch.confinement is not None:
        with suppress(OSError):  # a kernel without it is told when it matters
            system_paths = preopened.system_paths()
            os.close(
                landlock.ruleset(
                    launch.confinement.grants, (), landlock.abi(), preopened=system_paths
                )
            )
    if filtered:
        confinement.probe_enforcement(network=False)
