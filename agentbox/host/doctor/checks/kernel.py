"""The kernel's age and machine."""

import os
from collections.abc import Iterator

from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row
from agentbox.host.doctor.versions import at_least, number
from agentbox.sandbox.seccomp.syscalls import MACHINES

NAME = "kernel"
TITLE = "a kernel with everything that confines an agent"
OLDEST = (6, 12)  # Landlock ABI 6: signals and abstract sockets


def look(_host: Host) -> Iterator[Row]:
    found = os.uname()
    if found.machine not in MACHINES:
        yield Row(check=NAME, state="bad", said=f"Linux {found.release} on {found.machine}",
                  advice=f"An agent is confined on {' and '.join(MACHINES)} only; use such a machine.")  # fmt: skip
        return
    fine = at_least(found.release, OLDEST)
    yield Row(
        check=NAME, state="good" if fine else "bad", said=f"Linux {found.release} on {found.machine}",
        advice="" if fine else f"Bring the kernel to {number(OLDEST)} or later; agents are refused on this one unless"
        " [limits] allow_degraded says so.",
    )  # fmt: skip
