"""All lines, in the order in which they are shown."""

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
CASES_BY_NAME: Final = {line.name: line for line in CASES}
