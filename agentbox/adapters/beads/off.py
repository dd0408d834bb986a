"""The beads slot, off."""

from agentbox.adapters.beads.contract import Beads
from agentbox.adapters.off import Off


class OffBeads(Off):
    """Refuses every method of `Beads`."""

    slot = "beads"
    contract = Beads
