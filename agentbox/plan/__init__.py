"""The plan: manifest, features and lock turned into plain data, from which everything else is rendered.

`agentbox.plan.model` needs the standard library only, and Stage A of the boot imports it: what makes plans, and hence
reads manifests, is bound at first use; the model too, for commands that only compare what was kept of two plans.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbox.plan.errors import PlanError
    from agentbox.plan.make import make_plan
    from agentbox.plan.model import Plan

__all__ = ["Plan", "PlanError", "make_plan"]


def __getattr__(name: str) -> Any:
    if name == "Plan":
        from agentbox.plan.model import Plan

        return Plan
    if name == "make_plan":
        from agentbox.plan.make import make_plan

        return make_plan
    if name == "PlanError":
        from agentbox.plan.errors import PlanError

        return PlanError
    raise AttributeError(name)
