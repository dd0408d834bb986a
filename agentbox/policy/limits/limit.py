"""What the registry says of one limit."""

from typing import Literal

from agentbox.core.frozen import frozen

Unit = Literal[
    "bytes",
    "cores",
    "processes",
    "files",
    "seconds",
    "events",
    "bytes/s",
    "agents",
    "levels",
    "tools",
    "sessions",
    "requests",
    "items",
    "days",
]


@frozen
class Limit:
    """One limit. `config_path` is the manifest key, "" if the value is `fixed`. A test
    in tests/unit that is marked `limit(NAME)` shows it: it takes effect without affecting another
    agent.
    """

    name: str
    unit: Unit
    config_path: str
    enforced_by: str
    consequence: str
    bound: str
    fixed: int | None = None
