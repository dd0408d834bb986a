"""The plan: manifest, features and lock turned into plain data, from which everything else is rendered.

`agentbox.plan.model` needs the standard library only, and Stage A of the boot imports it: what makes plans, and hence
reads manifests, is bound at first use.
"""

from typing import TYPE_CHECKING, Any

from agentbox.plan.model import Plan

if TYPE_CHECKING:
    from agentbox.plan.errors import PlanError
    from agentbox.plan.make import make_plan

__all__ = ["Plan", "PlanError", "make_plan"]


def __getattr__(name: str) -> Any:
    if name == "make_plan":
        from agentbox.plan.make import make_plan

        return make_plan
    if name == "PlanError":
        from agentbox.plan.errors import PlanError

        return PlanError
    raise AttributeError(name)
