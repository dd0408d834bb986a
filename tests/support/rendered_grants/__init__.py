"""Parses the rendered files of each target back into grants, to compare them with the plan's.

The readers know the syntax of the targets, not the code that wrote the files. An unknown word is an
error, because it could grant anything.
"""

from support.rendered_grants.compare import (
    INEXPRESSIBLE,
    Waiver,
    excess,
    unused_waivers,
    unwaived,
)
from support.rendered_grants.compose_reader import read_compose
from support.rendered_grants.devcontainer_reader import read_devcontainer
from support.rendered_grants.kubernetes_reader import read_kubernetes
from support.rendered_grants.model import ExcessGrant, GrantedMount, Grants, UnknownGrantError
from support.rendered_grants.plan_reader import plan_grants
from support.rendered_grants.podman_reader import read_podman

READERS = {
    "compose": read_compose,
    "devcontainer": read_devcontainer,
    "kubernetes": read_kubernetes,
    "podman": read_podman,
}
"""Readers by target: rendered files by relative path -> grants."""

__all__ = [
    "INEXPRESSIBLE",
    "READERS",
    "ExcessGrant",
    "GrantedMount",
    "Grants",
    "UnknownGrantError",
    "Waiver",
    "excess",
    "plan_grants",
    "read_compose",
    "read_devcontainer",
    "read_kubernetes",
    "read_podman",
    "unused_waivers",
    "unwaived",
]
