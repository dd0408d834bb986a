"""Used and remaining budget: by the clock and along the line of ancestors."""

from support.model_gateway import BUDGET, ModelAuthorizer

from agentbox.policy.rights.authorization import Budget
from agentbox.policy.rights.budget_usage import BudgetUsage, budget_line, usage_report

SMALL = Budget(max_tokens=1000, max_calls=5, window_seconds=100, max_concurrent=4, weight=1)
NONE = {"cap": 1000, "used": 0, "reserved": 0, "left": 1000}


def test_left_is_the_least_in_the_line() -> None:
    """A child shows its own limit and use, and never a larger remainder than an ancestor's."""
    authorizations = ModelAuthorizer()
    parent = authorizations.add_agent("coder", budget=SMALL)
    child = authorizations.add_agent("tester", budget=BUDGET, parent=parent)
    spent = {
        "coder": BudgetUsage(since=1000, tokens=700, calls=4, reserved=50),
        "tester": BudgetUsage(since=1010, tokens=5, calls=1),
    }
    use = usage_report(budget_line(child), spent.get, 1050)
    assert use["tokens"] == {"cap": BUDGET.max_tokens, "used": 5, "reserved": 0, "left": 300}
    assert use["calls"] == {"cap": BUDGET.max_calls, "used": 1, "left": 1}
    assert use["resets_at"] == "1970-01-01T01:16:50.000Z"  # 1010 s + its window of an hour
    assert usage_report(budget_line(parent), spent.get, 1050)["tokens"]["reserved"] == 50


def test_of_a_window_that_is_over_only_what_is_in_flight_is_left() -> None:
    """The numbers fall without a call; without a window there is no end of one; an overdrawn budget
    has 0 remaining."""
    line = {"coder": SMALL}
    full = {"coder": BudgetUsage(since=1000, tokens=1200, calls=5)}
    assert usage_report(line, full.get, 1099.9)["tokens"] == {
        "cap": 1000,
        "used": 1200,
        "reserved": 0,
        "left": 0,
    }
    after = usage_report(line, full.get, 1100)
    assert (after["tokens"], after["calls"]["left"], after["resets_at"]) == (NONE, 5, None)
    flying = {"coder": BudgetUsage(since=1000, tokens=900, calls=5, reserved=400)}
    assert usage_report(line, flying.get, 1100)["tokens"] == {
        "cap": 1000,
        "used": 400,
        "reserved": 400,
        "left": 600,
    }
    assert usage_report({}, full.get, 0) == {}
