"""What a connection works on: the table of agents, the runs, the token, and the wish that the program ends."""

import asyncio
from dataclasses import dataclass, field

from agentbox.agents.host import Host
from agentbox.agents.runs import Runs
from agentbox.agents.table import Table


@dataclass(frozen=True, kw_only=True)
class Service:
    """One a program."""

    host: Host
    table: Table
    runs: Runs
    token: str = field(repr=False)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
