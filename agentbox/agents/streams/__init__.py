"""Output of agents on disk: what was kept, in order, from any cursor."""

from agentbox.agents.streams.log import EVENTS, StreamLog
from agentbox.agents.streams.reader import Reader

__all__ = ["EVENTS", "Reader", "StreamLog"]
