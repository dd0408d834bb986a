"""The one way in which a process of an agent comes to be, and the one way in which its whole tree ends."""

from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.spec import Ended, Launch

__all__ = ["Ended", "Launch", "SpawnFailed"]
