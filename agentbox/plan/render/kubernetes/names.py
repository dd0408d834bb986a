"""Names, labels and annotations of a box's objects."""

import re

from agentbox.plan.model import Plan
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.options import labels

CLIENT = {"agentbox.org/client": "true"}
"""Label of pods that may connect to the API."""
SCRAPE = {"agentbox.org/scrape": "true"}
"""Label of pods that may scrape the metrics."""

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def label(name: str, owner: str) -> str:
    """`name` if it is a DNS label (RFC 1123), as required for names of objects and volumes;
    RenderError names `owner`.
    """
    if not _LABEL.fullmatch(name):
        raise RenderError(
            f"cannot name a Kubernetes object {name!r} ({owner}): it must be a DNS label",
            "use lower case letters, digits and hyphens, with a letter or digit at both ends",
        )
    return name


def selector_labels(plan: Plan) -> dict[str, str]:
    """Labels by which the objects of one box select each other."""
    return {"app.kubernetes.io/name": "agentbox", "app.kubernetes.io/instance": plan.name}


def annotations(plan: Plan) -> dict[str, str]:
    """The digests that are labels in other targets: Kubernetes labels allow no colon and 63
    characters. In the pod template they restart the pod when the manifest changes.
    """
    return labels(plan)
