"""The beads slot, off."""

from agentbox.adapters.runtime.off import Off
from agentbox.contracts.beads import Beads


class OffBeads(Off):
    """Refuses every method of `Beads`."""

    slot = "beads"
    contract = Beads
