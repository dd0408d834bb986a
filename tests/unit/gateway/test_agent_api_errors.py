"""What an agent is told of an error of the management API."""

import json

from agentbox.client.errors import ApiError
from agentbox.gateway.agent_api.management_client import to_agent_api_error


def test_hints_are_for_the_operator() -> None:
    """An agent gets the sentence and members of a problem, not the commands that would help."""
    problem = {
        "code": "quota-exceeded",
        "detail": "cannot store it",
        "hint": "agentbox up",
        "limit": "max_size",
    }
    told = to_agent_api_error(ApiError(507, problem))
    assert (str(told), told.data["limit"]) == ("cannot store it", "max_size")
    assert "agentbox up" not in json.dumps(told.data)
