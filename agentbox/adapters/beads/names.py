"""Names of creators and assignees between a box and the mesh host that keeps its beads.

At the host a box speaks for itself only: its own names stand below its name there, `urn:agentbox:box:<id>:<name>`. Here
they are as they were given; names of the host itself stand below `urn:agentbox:host:`, those of other boxes as they are.
"""

import re
from dataclasses import replace

from agentbox.contracts.beads import Bead, BeadFilter

HOST = "urn:agentbox:host:"
_BOX = re.compile(r"urn:agentbox:box:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:|$)")


class Names:
    """`own` is the name of this box at the host; "" where the beads are of no session: then every name is as it is."""

    def __init__(self, own: str) -> None:
        self.own = own

    def out(self, name: str) -> str:
        """As the host has it."""
        if not self.own or _BOX.match(name):
            return name
        return name.removeprefix(HOST) if name.startswith(HOST) else f"{self.own}:{name}"

    def home(self, name: str) -> str:
        """The inverse."""
        if not self.own:
            return name
        if name.startswith(f"{self.own}:"):
            return name.removeprefix(f"{self.own}:")
        return name if _BOX.match(name) else HOST + name

    def bead(self, bead: Bead) -> Bead:
        """As this box has it."""
        if not self.own:
            return bead
        assignee = None if bead.assignee is None else self.home(bead.assignee)
        return replace(bead, creator=self.home(bead.creator), assignee=assignee)

    def filter(self, flt: BeadFilter) -> BeadFilter:
        """As the host has it."""
        creator, assignee = (None if name is None else self.out(name) for name in (flt.creator, flt.assignee))
        return replace(flt, creator=creator, assignee=assignee)
