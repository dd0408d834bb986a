"""All lines, in the order in which they are shown."""

from typing import Final

from agentbox.sandbox.attacks import (
    attributes,
    calls,
    door,
    files,
    hidden,
    limits,
    models,
    network,
    processes,
    review,
    sockets,
    states,
    streams,
)
from agentbox.sandbox.attacks.line import Line

LINES: Final[tuple[Line, ...]] = tuple(
    line
    for module in (
        *(files, attributes, processes, sockets, calls, network, models, door, states, review),
        *(limits, hidden, streams),
    )
    for line in module.TABLE.lines
)
BY_NAME: Final = {line.name: line for line in LINES}
