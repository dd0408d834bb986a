"""The operations of the five slots, for the pipeline around their adapters."""

from collections.abc import Mapping

from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.operations.beads import BEADS
from agentbox.contracts.operations.events import EVENTS
from agentbox.contracts.operations.memory import MEMORY
from agentbox.contracts.operations.pods import PODS
from agentbox.contracts.routes.operation import Operation

SLOTS = {resource.name: resource for resource in (BEADS, PODS, MEMORY, EVENTS, AGENTS)}
METHODS: Mapping[str, tuple[Operation, ...]] = {
    name: resource.operations for name, resource in SLOTS.items()
}
CONTRACTS: Mapping[str, type] = {name: resource.protocol for name, resource in SLOTS.items()}
