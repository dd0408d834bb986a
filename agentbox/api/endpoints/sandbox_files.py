"""Files of sandboxes over HTTP, forwarded to the agent host in parts: it opens them."""

from collections.abc import AsyncIterator
from urllib.parse import unquote_to_bytes

from starlette.responses import Response

from agentbox.api.http.request import ApiRequest
from agentbox.api.plan_source import PlanSource
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.contracts.sandboxes import FileChunk
from agentbox.core.http.problems import invalid
from agentbox.core.http.responses import PiecesResponse
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import BackendError, FileTooLarge

_PART = 4 << 20  # bytes of one call of agent-host
_TYPE = ("content-type", "application/octet-stream")


class SandboxFileHandlers:
    """Raises SlotUnavailable without an agent host of this release."""

    def __init__(self, host: AgentHost, plans: PlanSource) -> None:
        self._host, self._plans = host, plans

    async def read(self, request: ApiRequest) -> Response:
        """The first part decides about the status; a file that changes later aborts the answer."""
        sandbox_id, path = _target(request)
        first = await self._host.read_sandbox_file(sandbox_id, path, offset=0, size=_PART)
        pieces = self._pieces(sandbox_id, path, first)
        return PiecesResponse(pieces, first.size, 200, (_TYPE,))

    async def write(self, request: ApiRequest) -> None:
        sandbox_id, path = _target(request)
        self._check_length(request)
        upload, pending = uuid7(), bytearray()
        async for chunk in request.incoming.chunks():
            pending += chunk
            if len(pending) >= _PART:
                await self._host.write_sandbox_file(
                    sandbox_id, path, upload=upload, data=bytes(pending), last=False
                )
                pending.clear()
        await self._host.write_sandbox_file(
            sandbox_id, path, upload=upload, data=bytes(pending), last=True
        )

    async def remove(self, request: ApiRequest) -> None:
        await self._host.remove_sandbox_file(*_target(request))

    def _check_length(self, request: ApiRequest) -> None:
        """Rejects a body with a too large Content-Length before it is read."""
        cap = self._plans.current.sandboxes.max_file
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > cap:
            raise FileTooLarge(
                f"cannot accept a file of {length} bytes: sandboxes.max_file is {cap}",
                observed=int(length),
                cap=cap,
            )

    async def _pieces(self, sandbox_id: str, path: str, chunk: FileChunk) -> AsyncIterator[bytes]:
        sent, tag, size = 0, chunk.tag, chunk.size
        while True:
            yield chunk.data
            sent += len(chunk.data)
            if sent >= size:
                return
            chunk = await self._host.read_sandbox_file(sandbox_id, path, offset=sent, size=_PART)
            if chunk.tag != tag or not chunk.data:
                raise BackendError(
                    f"cannot read {path!r}: it has changed", slot="orchestrator", impl=""
                )


def _target(request: ApiRequest) -> tuple[str, str]:
    """The sandbox, and the path. Raises ValidationError for an encoded slash and invalid UTF-8."""
    raw = request.parameters["path"]
    if "%2f" in raw.lower():
        raise invalid("/path", "has an encoded slash")
    try:
        path = unquote_to_bytes(raw.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise invalid("/path", "is not valid UTF-8") from None
    return request.parameters["id"], path
