"""Operations of usage: tokens and cost of model calls."""

from agentbox.contracts.routes.operation import read
from agentbox.contracts.routes.resource import Resource
from agentbox.contracts.usage import UsageEndpoints

USAGE = Resource(
    "usage",
    UsageEndpoints,
    operations=(
        read(
            "report",
            "GET /v1/usage",
            "Tokens and cost of the model calls since a time, by agent, task, model or day.",
            route="usage_report",
            scope=("agents:read",),
        ),
    ),
)
RESOURCES = (USAGE,)
