# Written by tools/sync_client.py from async_client/request_sender.py.
"""What the methods of a resource call."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from agentbox.core.http.sse_parser import SseEvent

if TYPE_CHECKING:
    from agentbox.client.sync.attach import Attached
    from agentbox.client.transport import HttpResponse


class RequestSender(Protocol):
    """A client, or the peer of a slot."""

    def request(
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
    ) -> Iterator[SseEvent]: ...

    def open_socket(
        self,
        name: str,
        parameters: Mapping[str, str],
        *,
        query: Mapping[str, object] | None = None,
    ) -> "Attached": ...
