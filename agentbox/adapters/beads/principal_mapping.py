"""Names of creators and assignees between a box and the mesh host that stores its beads.

At the host the names of a box have the prefix `urn:agentbox:box:<id>:`. In the box they are
unprefixed; names of the host have the prefix `urn:agentbox:host:`, names of other boxes are
unchanged.
"""

import re
from dataclasses import replace

from agentbox.contracts.beads import Bead, BeadFilter

HOST_PREFIX = "urn:agentbox:host:"
_BOX_URN = re.compile(r"urn:agentbox:box:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:|$)")


class PrincipalMapping:
    """`box_name` is the name of this box at the host; "" without a session: names are unchanged
    then."""

    def __init__(self, box_name: str) -> None:
        self.box_name = box_name

    def to_host(self, name: str) -> str:
        """Map a local name to the host's."""
        if not self.box_name or _BOX_URN.match(name):
            return name
        return (
            name.removeprefix(HOST_PREFIX)
            if name.startswith(HOST_PREFIX)
            else f"{self.box_name}:{name}"
        )

    def to_local(self, name: str) -> str:
        """Map a name of the host to the local one."""
        if not self.box_name:
            return name
        if name.startswith(f"{self.box_name}:"):
            return name.removeprefix(f"{self.box_name}:")
        return name if _BOX_URN.match(name) else HOST_PREFIX + name

    def bead_to_local(self, bead: Bead) -> Bead:
        """Map a bead of the host."""
        if not self.box_name:
            return bead
        assignee = None if bead.assignee is None else self.to_local(bead.assignee)
        return replace(bead, creator=self.to_local(bead.creator), assignee=assignee)

    def filter_to_host(self, filter: BeadFilter) -> BeadFilter:
        """Map a filter for the host."""
        creator, assignee = (
            None if name is None else self.to_host(name)
            for name in (filter.creator, filter.assignee)
        )
        return replace(filter, creator=creator, assignee=assignee)
