"""The rendered text of each target, read back to one set of grants, to be compared with the plan's.

The readers know the words of the targets, not the code that wrote them: what a text grants is what counts. A word that a
reader does not know is an error, since it may grant anything.
"""

from agentbox.host.rendered_grants.compare import INEXPRESSIBLE, Waiver, excess, unexcused, unused
from agentbox.host.rendered_grants.model import Excess, Grants, Mount, UnknownGrantError
from agentbox.host.rendered_grants.of_compose import of_compose
from agentbox.host.rendered_grants.of_devcontainer import of_devcontainer
from agentbox.host.rendered_grants.of_kubernetes import of_kubernetes
from agentbox.host.rendered_grants.of_plan import of_plan
from agentbox.host.rendered_grants.of_podman import of_podman

READERS = {
    "compose": of_compose,
    "devcontainer": of_devcontainer,
    "kubernetes": of_kubernetes,
    "podman": of_podman,
}
"""By target: rendered files by relative path -> grants."""

__all__ = [
    "INEXPRESSIBLE",
    "READERS",
    "Excess",
    "Grants",
    "Mount",
    "UnknownGrantError",
    "Waiver",
    "excess",
    "of_compose",
    "of_devcontainer",
    "of_kubernetes",
    "of_plan",
    "of_podman",
    "unexcused",
    "unused",
]
