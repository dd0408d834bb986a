"""Output of agents on disk: what was kept, in order, from any cursor."""

from agentbox.agents.streams.attached import AttachedReader, AttachedReaders
from agentbox.agents.streams.log import EVENTS, StreamLog
from agentbox.agents.streams.reader import Reader

__all__ = ["EVENTS", "AttachedReader", "AttachedReaders", "Reader", "StreamLog"]
