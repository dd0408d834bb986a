"""The pods slot, off."""

from agentbox.adapters.off import Off
from agentbox.adapters.pods.contract import Pods


class OffPods(Off):
    """Refuses every method of `Pods`."""

    slot = "pods"
    contract = Pods
