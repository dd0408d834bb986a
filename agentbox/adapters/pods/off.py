"""The pods slot, off."""

from agentbox.adapters.runtime.off import Off
from agentbox.contracts.pods import Pods


class OffPods(Off):
    """Refuses every method of `Pods`."""

    slot = "pods"
    contract = Pods
