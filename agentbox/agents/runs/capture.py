"""The first bytes of a run's output, for its result."""

from pathlib import Path

import structlog

from agentbox.contracts.orchestrator import StreamKind

log = structlog.get_logger()
IN_MEMORY = 16 << 10  # bytes of one stream; what is longer is in a file


class _FirstBytes:
    """Of one stream: in memory, or in the file `path` once they are too many."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, self.is_stored = path, 0, False
        self._buffer = bytearray()

    def add(self, data: bytes) -> None:
        """Raises OSError; then nothing of `data` is kept."""
        if not self.is_stored and self.size + len(data) <= IN_MEMORY:
            self._buffer += data
        else:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(bytes(self._buffer) + data)
            self._buffer.clear()
            self.is_stored = True
        self.size += len(data)

    def _write(self, data: bytes) -> None:
        with self.path.open("r+b" if self.is_stored else "wb", buffering=0) as file:
            start = file.seek(0, 2)
            try:
                written = 0
                while written < len(data):
                    written += file.write(data[written:])
            except OSError:
                file.truncate(start)
                raise

    def read(self) -> bytes:
        return self.path.read_bytes() if self.is_stored else bytes(self._buffer)


class OutputCapture:
    """Keeps the first `limit` bytes of each stream and records whether there was more. More than
    IN_MEMORY bytes of a stream are in `directory`, as `first.stdout` and `first.stderr`. If the
    disk fails, the rest is lost and counts as more."""

    def __init__(self, limit: int, directory: Path) -> None:
        self._limit = limit
        self._streams: dict[StreamKind, _FirstBytes] = {
            kind: _FirstBytes(first_bytes(directory, kind)) for kind in ("stdout", "stderr")
        }
        self._has_failed = False
        self.truncated = False

    def add(self, kind: StreamKind, data: bytes) -> None:
        stream = self._streams[kind]
        fitting = b"" if self._has_failed else data[: self._limit - stream.size]
        self.truncated = self.truncated or len(data) > len(fitting)
        if fitting:
            try:
                stream.add(fitting)
            except OSError as error:
                log.error("cannot store output", file=str(stream.path), reason=error.strerror)
                self._has_failed = self.truncated = True

    @property
    def size(self) -> int:
        """Bytes of both streams."""
        return sum(stream.size for stream in self._streams.values())

    @property
    def in_memory(self) -> "tuple[bytes | None, bytes | None]":
        """Stdout and stderr; None for one that is in its file."""
        stdout, stderr = (
            None if stream.is_stored else stream.read() for stream in self._streams.values()
        )
        return stdout, stderr

    @property
    def stdout(self) -> bytes:
        return self._streams["stdout"].read()

    @property
    def stderr(self) -> bytes:
        return self._streams["stderr"].read()

    def discard(self) -> None:
        """Removes the files."""
        for stream in self._streams.values():
            stream.path.unlink(missing_ok=True)


def first_bytes(directory: Path, kind: StreamKind) -> Path:
    """The file of a stream in that directory."""
    return directory / f"first.{kind}"
