"""The first bytes of a run's output, kept in memory for its answer."""

from typing import TYPE_CHECKING

from agentbox.contracts.orchestrator import StreamKind

if TYPE_CHECKING:
    from agentbox.agents.runs.life import Life


class Capture:
    """Keeps `most` bytes of each stream and says whether there was more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[StreamKind, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.truncated = False
        self.life: Life | None = None  # of the agent whose output this is

    def add(self, kind: StreamKind, data: bytes) -> None:
        kept = self._kept[kind]
        room = self._most - len(kept)
        kept += data[:room]
        self.truncated = self.truncated or len(data) > room

    @property
    def stdout(self) -> bytes:
        return bytes(self._kept["stdout"])

    @property
    def stderr(self) -> bytes:
        return bytes(self._kept["stderr"])
