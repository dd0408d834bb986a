"""The bridge between an editor's pipes and the box: one JSON-RPC message a line on this side."""

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

from agentbox.core.rpc.pipes import open_reader, open_writer
from agentbox.host.acp.box_connection import MAX_MESSAGE, BoxConnection, Locate
from agentbox.host.acp.project_paths import OutsideProject, ProjectPaths

_PARSE_ERROR, _INVALID_PARAMS, _INVALID_REQUEST = -32700, -32602, -32600  # JSON-RPC 2.0, 5.1


async def serve(
    locate: Locate, query: Mapping[str, str], paths: ProjectPaths, fds: tuple[int, int] = (0, 1)
) -> None:
    """Serves until the editor closes its pipe or the box ends the connection. Nothing but messages
    is written to the second descriptor. Raises ApiError and BoxUnreachable.
    """
    # Copies: asyncio closes what it reads and writes.
    reader, _ = await open_reader(os.dup(fds[0]), MAX_MESSAGE)
    writer = await open_writer(os.dup(fds[1]))
    bridge = _Bridge(BoxConnection(locate, query), paths, writer)
    reading = asyncio.create_task(bridge.read_editor(reader))
    try:
        await bridge.read_box()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        writer.close()


class _Bridge:
    def __init__(
        self, box: BoxConnection, paths: ProjectPaths, writer: asyncio.StreamWriter
    ) -> None:
        self._box, self._paths, self._writer = box, paths, writer

    async def read_box(self) -> None:
        try:
            async for message in self._box.messages():
                await self._write(self._paths.to_editor(message))
        except ConnectionError:
            return  # the editor has ended

    async def read_editor(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                if line.strip():
                    await self._take(line)
        except ValueError:  # a line over the limit: where the next one begins is unknown
            await self._refuse(None, _INVALID_REQUEST, f"a message has over {MAX_MESSAGE} bytes")
        self._box.close()

    async def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            await self._refuse(None, _PARSE_ERROR, "this line is not JSON")
            return
        if not isinstance(message, dict):
            await self._refuse(None, _INVALID_REQUEST, "a message must be one object")
            return
        try:
            self._box.send(self._paths.to_box(message))
        except OutsideProject as error:
            await self._refuse_folder(message, error.path)

    async def _refuse_folder(self, message: Mapping[str, Any], path: str) -> None:
        await self._refuse(
            message.get("id"),
            _INVALID_PARAMS,
            f"cannot work in {path}: the box has mounted {self._paths.project}. "
            f"`agentbox up --project {path}` mounts it.",
            kind="path-outside",
        )

    async def _refuse(self, number: Any, code: int, text: str, **data: str) -> None:
        error = {"code": code, "message": text, **({"data": data} if data else {})}
        await self._write({"jsonrpc": "2.0", "id": number, "error": error})

    async def _write(self, message: Mapping[str, Any]) -> None:
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()
