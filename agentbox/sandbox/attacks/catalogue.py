"""All attack cases, in display order."""

from typing import Final

from agentbox.sandbox.attacks.case import AttackCase
from agentbox.sandbox.attacks.cases import (
    agent_api,
    attributes,
    calls,
    files,
    hidden_usage,
    limits,
    models,
    network,
    paths,
    processes,
    review,
    sockets,
    states,
    streams,
    uncounted_usage,
)

CASES: Final[tuple[AttackCase, ...]] = tuple(
    case
    for module in (
        *(
            files,
            paths,
            attributes,
            processes,
            sockets,
            calls,
            network,
            models,
            agent_api,
            states,
            review,
        ),
        *(limits, uncounted_usage, hidden_usage, streams),
    )
    for case in module.SUITE.cases
)
CASES_BY_NAME: Final = {case.name: case for case in CASES}
