"""A run of what a start will do, by the process that will do it, while it waits for its order.

A fork shares each page of memory with its parent until one of them writes there, and Python writes wherever it looks: the
first time costs several times the second. Nothing stays of a rehearsal: no rule is in force, no descriptor is open.
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentbox.core.linux import landlock
from agentbox.core.linux.landlock import Grant
from agentbox.sandbox import confinement
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.launcher import preopened, tree
from agentbox.sandbox.spec import Launch

if TYPE_CHECKING:
    from agentbox.sandbox.launcher.newborn import Newborn

_GRANTS: Final = tuple(Grant(path, "rlwmxd") for path in ("/usr/lib", "/usr/bin", "/lib", "/etc", "/proc", "/dev/null"))
_LAUNCH: Final = Launch(
    argv=("true",), env={"PATH": "/usr/bin"}, cwd="/", roots=("/",), confinement=Confinement(grants=_GRANTS)
)


def of_keeper(newborn: "Newborn", locks: int) -> None:
    """The keeper's part: reads an order, sets up where calls are answered and answers, looks at a process. Raises OSError."""
    Launch.from_line(_LAUNCH.to_line())
    newborn.rehearse(Confinement(grants=_GRANTS), locks)
    tree.look(os.getpid())


def of_agent(*, filtered: bool) -> None:
    """The part of the process that becomes the agent: reads an order, builds a ruleset, tries what must be refused."""
    launch = Launch.from_line(_LAUNCH.to_line())
    if launch.confinement is not None:
        with suppress(OSError):  # a kernel without it is told when it matters
            of_system = preopened.of_system()
            os.close(landlock.ruleset(launch.confinement.grants, (), landlock.abi(), ahead=of_system))
    if filtered:
        confinement.held(network=False)
