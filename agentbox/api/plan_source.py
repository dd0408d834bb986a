"""The plan in force, which changes when live keys of the manifest are applied."""

from collections.abc import Callable

from agentbox.plan.model import Plan


class PlanSource:
    """`current` is the plan in force."""

    def __init__(self, plan: Plan) -> None:
        self.current = plan
        self._subscribers: list[Callable[[Plan], None]] = []

    def subscribe(self, changed: Callable[[Plan], None]) -> None:
        """Calls `changed` with each later plan, in the order of the subscriptions."""
        self._subscribers.append(changed)

    def replace(self, plan: Plan) -> None:
        """Puts another plan in force."""
        self.current = plan
        for changed in self._subscribers:
            changed(plan)
