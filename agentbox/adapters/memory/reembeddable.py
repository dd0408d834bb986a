"""The store interface for rewriting vectors (memory/reembed.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentbox.contracts.memory import Embedder

PARTIAL_MARKER = ", in part "


@dataclass(frozen=True, slots=True)
class ReembedCursor:
    """The start of a pass. `stored` is the stored model, "" without vectors."""

    stored: str
    after: int  # number of the last entry done
    done: int
    total: int


class ReembeddableStore(Protocol):
    """A store whose vectors can be rewritten, opened only for that."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def begin(self, embedder: Embedder) -> ReembedCursor: ...
    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]: ...

    async def write(
        self, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]
    ) -> int:
        """Write the vectors if the position is still `after`, and return the new position: another
        pass may be ahead."""
        ...

    async def finish(self, embedder: Embedder, files: str) -> None: ...


def partial_model_id(stored: str, new: str) -> str:
    """Return the stored model name during a pass."""
    return f"{stored.partition(PARTIAL_MARKER)[0]}{PARTIAL_MARKER}{new}"
