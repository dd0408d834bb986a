"""A trial on this very host: a process is confined as an agent is, and tries what must be refused."""

import json
import subprocess
import sys
from collections.abc import Iterator

from agentbox.doctor.host import Host
from agentbox.doctor.row import Row
from agentbox.settings import CHECKOUT

NAME = "confinement"
TITLE = "a process that is confined here is held"
_SECONDS = 20
_TRIAL = """
import json
from agentbox.sandbox import confine, kernel
kernel.forbid_new_privileges()
abi = confine.apply(confine.Confinement(allow_degraded=("filesystem", "signals")))
print(json.dumps({"abi": abi, "held": confine.held()}))
"""


def look(_host: Host) -> Iterator[Row]:
    done = subprocess.run(
        [sys.executable, "-c", _TRIAL], cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=_SECONDS,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        yield Row(check=NAME, state="bad", said=f"the kernel did not take the rules: {why}",
                  advice="The rows of kernel, Landlock and seccomp say what is missing.")  # fmt: skip
        return
    held = json.loads(done.stdout)["held"]
    lacking = [name for name, fine in held.items() if not fine]
    yield Row(
        check=NAME, state="bad" if lacking else "good", facts=held,
        said=f"not refused: {', '.join(lacking)}" if lacking else "a folder, a signal to a stranger and a socket were refused",
        advice="`agentbox doctor --attack` tries the whole list in a box." if not lacking else "No box of this kernel holds its agents.",
    )  # fmt: skip
