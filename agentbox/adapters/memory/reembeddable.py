"""What a store must do for its vectors to be rewritten (reembed.py), and how it says that a pass is under way."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentbox.contracts.memory import Embedder

PARTIAL_MARKER = ", in part "


@dataclass(frozen=True, slots=True)
class ReembedCursor:
    """Where a pass goes on. `stored` is the model that the store names, "" for one that holds no vector yet."""

    stored: str
    after: int  # number of the last entry that is done
    done: int
    total: int


class ReembeddableStore(Protocol):
    """A store whose vectors can be rewritten, opened for that only."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def begin(self, embedder: Embedder) -> ReembedCursor: ...
    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]: ...

    async def write(
        self, embedder: Embedder, after: int, vectors: Sequence[tuple[int, bytes | None]]
    ) -> int:
        """Where it stands then: another pass may have been faster. None is written unless it stood at `after`."""
        ...

    async def finish(self, embedder: Embedder, files: str) -> None: ...


def partial_model_id(stored: str, new: str) -> str:
    """What the store's model is called while a pass is under way."""
    return f"{stored.partition(PARTIAL_MARKER)[0]}{PARTIAL_MARKER}{new}"
