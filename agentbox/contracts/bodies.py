"""Request records that are derived from signatures."""

from typing import Any

from agentbox.contracts.operations.agents import AGENTS
from agentbox.contracts.operations.beads import BEADS
from agentbox.contracts.operations.events import EVENTS
from agentbox.contracts.operations.memory import MEMORY

ClaimBody: Any = BEADS.bodies["ClaimBody"]
ClaimNextBody: Any = BEADS.bodies["ClaimNextBody"]
HeartbeatBody: Any = BEADS.bodies["HeartbeatBody"]
ReleaseBody: Any = BEADS.bodies["ReleaseBody"]
CloseBody: Any = BEADS.bodies["CloseBody"]
StoreBody: Any = MEMORY.bodies["StoreBody"]
SearchBody: Any = MEMORY.bodies["SearchBody"]
VerifyBody: Any = EVENTS.bodies["VerifyBody"]
SignalBody: Any = AGENTS.bodies["SignalBody"]
RunBody: Any = AGENTS.bodies["RunBody"]
