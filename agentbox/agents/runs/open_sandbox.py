"""What programs are started in while a sandbox runs."""

from typing import NamedTuple

from agentbox.sandbox.launcher.client import AgentProcess
from agentbox.sandbox.spec import Launch


class OpenSandbox(NamedTuple):
    """`launch`: what its programs share. `objects`: as in PathVariables."""

    process: AgentProcess
    launch: Launch
    objects: tuple[str, ...]
