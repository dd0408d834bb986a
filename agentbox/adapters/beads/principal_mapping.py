"""Names of creators and assignees between a box and the mesh host that keeps its beads.

At the host a box speaks for itself only: its own names stand below its name there, `urn:agentbox:box:<id>:<name>`. Here
they are as they were given; names of the host itself stand below `urn:agentbox:host:`, those of other boxes as they are.
"""

import re
from dataclasses import replace

from agentbox.contracts.beads import Bead, BeadFilter

HOST_PREFIX = "urn:agentbox:host:"
_BOX_URN = re.compile(r"urn:agentbox:box:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:|$)")


class PrincipalMapping:
    """`own` is the name of this box at the host; "" where the beads are of no session: then every name is as it is."""

    def __init__(self, box_name: str) -> None:
        self.box_name = box_name

    def to_host(self, name: str) -> str:
        """As the host has it."""
        if not self.box_name or _BOX_URN.match(name):
            return name
        return (
            name.removeprefix(HOST_PREFIX)
            if name.startswith(HOST_PREFIX)
            else f"{self.box_name}:{name}"
        )

    def to_local(self, name: str) -> str:
        """The inverse."""
        if not self.box_name:
            return name
        if name.startswith(f"{self.box_name}:"):
            return name.removeprefix(f"{self.box_name}:")
        return name if _BOX_URN.match(name) else HOST_PREFIX + name

    def bead_to_local(self, bead: Bead) -> Bead:
        """As this box has it."""
        if not self.box_name:
            return bead
        assignee = None if bead.assignee is None else self.to_local(bead.assignee)
        return replace(bead, creator=self.to_local(bead.creator), assignee=assignee)

    def filter_to_host(self, flt: BeadFilter) -> BeadFilter:
        """As the host has it."""
        creator, assignee = (
            None if name is None else self.to_host(name) for name in (flt.creator, flt.assignee)
        )
        return replace(flt, creator=creator, assignee=assignee)
