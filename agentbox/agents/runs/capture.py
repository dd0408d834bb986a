"""The first bytes of a run's output, kept in memory for its result."""

from agentbox.contracts.orchestrator import StreamKind


class OutputCapture:
    """Keeps `limit` bytes of each stream and records whether there was more."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffers: dict[StreamKind, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.truncated = False

    def add(self, kind: StreamKind, data: bytes) -> None:
        buffer = self._buffers[kind]
        remaining = self._limit - len(buffer)
        buffer += data[:remaining]
        self.truncated = self.truncated or len(data) > remaining

    @property
    def stdout(self) -> bytes:
        return bytes(self._buffers["stdout"])

    @property
    def stderr(self) -> bytes:
        return bytes(self._buffers["stderr"])
