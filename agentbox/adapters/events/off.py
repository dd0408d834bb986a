"""The events slot, off."""

from agentbox.adapters.runtime.off import Off
from agentbox.contracts.events import CONTRACT_VERSION, Events


class OffEvents(Off):
    """Refuses every method of `Events`."""

    slot = "events"
    contract_version = CONTRACT_VERSION
    contract = Events
