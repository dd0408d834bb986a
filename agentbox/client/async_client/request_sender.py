"""What the methods of a resource call."""

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from agentbox.core.http.sse_parser import SseEvent

if TYPE_CHECKING:
    from agentbox.client.async_client.attach import AsyncAttached
    from agentbox.client.transport import HttpResponse


class AsyncRequestSender(Protocol):
    """A client, or the peer of a slot."""

    async def request(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        accepted: tuple[int, ...] = (),
        wait_s: float | None = None,
    ) -> "HttpResponse": ...

    def stream(
        self,
        name: str,
        parameters: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, object] | None = None,
        last: str = "",
        reconnect_timeout: float = 60.0,
    ) -> AsyncIterator[SseEvent]: ...

    async def open_socket(
        self,
        name: str,
        parameters: Mapping[str, str],
        *,
        query: Mapping[str, object] | None = None,
    ) -> "AsyncAttached": ...
