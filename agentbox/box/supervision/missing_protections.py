"""Protections that a box lacks in its environment, as `up`, `status`, `/health` and `boot.json`
list them.
"""

from agentbox.plan.names import KUBERNETES

PROCESS_ENGINE_LACKS: tuple[str, ...] = (
    "no read-only root",
    "no own PID, mount or network namespace",
    "no memory, CPU or pid limit for the whole box (each agent's still hold)",
    "no seccomp list on the control plane",
    "host files readable by the control plane",
)
"""Without a container."""
KUBERNETES_LACKS: tuple[str, ...] = (
    "no noexec, nosuid, nodev on memory volumes (no rule of an agent allows execution there)",
    "no pid limit for the whole box but the node's podPidsLimit (each agent's still hold)",
)
"""In a pod: what a pod template cannot express. The posture check expects none of it there."""


def absent_protections(*, contained: bool, target: str) -> tuple[str, ...]:
    """The list for a box in a container or not, on the target that its renderer set."""
    if not contained:
        return PROCESS_ENGINE_LACKS
    return KUBERNETES_LACKS if target == KUBERNETES else ()
