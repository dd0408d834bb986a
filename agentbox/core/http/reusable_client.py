"""A client of HTTP that is created on use."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """Any asynchronous client."""

    async def aclose(self) -> None: ...


C = TypeVar("C", bound=Closable)


class ReusableClient(Generic[C]):
    """Is created on first use, and again on the first use after `close`."""

    def __init__(self, create: Callable[[], C]) -> None:
        self._create = create
        self._client: C | None = None

    def get(self) -> C:
        """Raises what `create` raises."""
        if self._client is None:
            self._client = self._create()
        return self._client

    async def close(self) -> None:
        """Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
