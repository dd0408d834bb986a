"""What of a store agents may fill: the rest is for the box and its operator."""

from typing import Final

from agentbox.core.slot_errors import QuotaExceeded
from agentbox.policy.rights.authorization import PRINCIPAL

AGENTS_SHARE: Final = 0.75  # of a store, for all agents together
STATE_SHARE: Final = 0.25  # of a store, for the agents of one state
OPEN_BEADS: Final = 5000  # not closed, made by one agent
OPEN_BEADS_OF_AGENTS: Final = 25_000  # by all


def is_agent(principal: str) -> bool:
    """Whether that is who an agent calls as."""
    return principal.startswith(PRINCIPAL)


def agents_share(total: int) -> int:
    """Of a number of bytes or objects, for all agents."""
    return int(total * AGENTS_SHARE)


def too_many_beads(observed: int, cap: int, owner: str) -> QuotaExceeded:
    """The refusal of one bead more."""
    return QuotaExceeded(
        f"cannot create a bead: {owner} has {observed} that are not closed, at most {cap} are allowed",
        hint="close some, or have the operator close them",
        limit="open_beads",
        observed=observed,
        cap=cap,
        config_path="",
    )
