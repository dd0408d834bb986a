"""The share of a store that agents may fill; the rest is reserved for the box and its operator."""

from typing import Final

from agentbox.core.slot_errors import QuotaExceeded
from agentbox.policy.rights.authorization import PRINCIPAL

AGENTS_SHARE: Final = 0.75  # of a store, for all agents together
STATE_SHARE: Final = 0.25  # of a store, for the agents of one state
OPEN_BEADS: Final = 5000  # unclosed beads created by one agent
OPEN_BEADS_OF_AGENTS: Final = 25_000  # unclosed beads created by all agents


def is_agent(principal: str) -> bool:
    """Return whether the principal is an agent."""
    return principal.startswith(PRINCIPAL)


def agents_share(total: int) -> int:
    """Return the share of all agents in a number of bytes or objects."""
    return int(total * AGENTS_SHARE)


def too_many_beads(observed: int, cap: int, owner: str) -> QuotaExceeded:
    """Return the error for too many open beads."""
    return QuotaExceeded(
        f"cannot create a bead: {owner} has {observed} open beads, the maximum is {cap}",
        hint="close some, or ask the operator to",
        limit="open_beads",
        observed=observed,
        cap=cap,
        config_path="",
    )
