"""All attack cases, in display order."""

from typing import Final

from agentbox.sandbox.attacks import (
    agent_api,
    attributes,
    calls,
    files,
    hidden_usage,
    limits,
    models,
    network,
    processes,
    review,
    sockets,
    states,
    streams,
)
from agentbox.sandbox.attacks.case import AttackCase

CASES: Final[tuple[AttackCase, ...]] = tuple(
    case
    for module in (
        *(files, attributes, processes, sockets, calls, network, models, agent_api, states, review),
        *(limits, hidden_usage, streams),
    )
    for case in module.SUITE.cases
)
CASES_BY_NAME: Final = {case.name: case for case in CASES}
