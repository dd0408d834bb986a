"""Standard input and output of an agent over the connection to agent-host."""

import contextlib
from collections.abc import AsyncIterator

from agentbox.core.deadline import Deadline
from agentbox.core.records.wire import from_wire, to_wire
from agentbox.core.rpc.client import RpcClient, Subscription

_SEND_SECONDS = 30.0
_CHUNK_BYTES = 256 << 10  # bytes per message


class LocalAttachment:
    """One attachment at a time. Iteration yields chunks of stdout from where the last attachment
    stopped reading.

    A reader that falls behind agent-host's buffer gets CursorExpired; nothing is skipped silently.
    """

    def __init__(self, client: RpcClient, subscription: Subscription) -> None:
        self._client, self._subscription = client, subscription

    async def send(self, data: bytes) -> None:
        """Return when the agent's pipe has accepted the bytes. Raises InvalidTransition after the
        agent ended."""
        for offset in range(0, len(data), _CHUNK_BYTES):
            await self._send_stdin({"data": to_wire(data[offset : offset + _CHUNK_BYTES])})

    async def close_stdin(self) -> None:
        """Send end of file to the agent."""
        await self._send_stdin({"eof": True})

    async def aclose(self) -> None:
        """Detach; the agent keeps running and its stdin stays open. Idempotent."""
        self._subscription.close()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        async with contextlib.aclosing(self._subscription.items()) as items:
            async for item in items:
                yield from_wire(bytes, item)

    async def _send_stdin(self, members: dict[str, object]) -> None:
        params = {"subscription": self._subscription.number, **members}
        await self._client.call("agent.stdin", params, Deadline.after(_SEND_SECONDS))
