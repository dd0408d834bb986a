"""The connection to a program of this box over its Unix socket."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentbox.client.reconnecting import ReconnectingConnection
from agentbox.core.deadline import Deadline
from agentbox.core.rpc import messages
from agentbox.core.rpc.client import RpcClient
from agentbox.core.slot_errors import SlotUnavailable

_RETRY_SECONDS: Final = 0.02


class ProgramConnection(ReconnectingConnection):
    """Raises SlotUnavailable while the program does not answer.

    `token` returns what the program expects in `initialize`. With `waits`, a call waits for a
    program that starts, 10 s at most.
    """

    def __init__(
        self,
        program: str,
        socket: Path,
        token: Callable[[], str],
        contract_version: str,
        *,
        slot: str,
        waits: bool,
    ) -> None:
        super().__init__()
        self.peer = self.impl = program
        self._socket, self._token, self._contract_version = socket, token, contract_version
        self._slot, self._waits = slot, waits

    async def _open(self, deadline: Deadline) -> RpcClient:
        client = await self._connect(deadline)
        try:
            params = {"token": self._read_token(), "contract_version": self._contract_version}
            await client.call("initialize", params, deadline)
        except BaseException:
            await client.close()
            raise
        return client

    async def _connect(self, deadline: Deadline) -> RpcClient:
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(
                    self._socket, limit=messages.LINE_LIMIT
                )
                return RpcClient(reader, writer, self.impl, peer=self.peer, slot=self._slot)
            except OSError as error:
                if not self._waits or deadline.remaining() <= _RETRY_SECONDS:
                    raise self._unreachable(error) from error
            await asyncio.sleep(_RETRY_SECONDS)

    def _read_token(self) -> str:
        try:
            return self._token()
        except OSError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: OSError) -> SlotUnavailable:
        return SlotUnavailable(
            f"cannot reach {self.peer}: {error.strerror or error}",
            hint=f"agentbox logs {self.peer}",
            slot=self._slot,
            impl=self.impl,
            since=None,
        )
