"""The events slot, off."""

from agentbox.adapters.events.contract import CONTRACT_VERSION, Events
from agentbox.adapters.off import Off


class OffEvents(Off):
    """Refuses every method of `Events`."""

    slot = "events"
    contract_version = CONTRACT_VERSION
    contract = Events
