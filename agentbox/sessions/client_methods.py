"""What an agent asks of its client: files and terminals. They never leave the box: files are those
of its branch, a terminal is another program of its sandbox.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from agentbox.contracts.orchestrator import MAX_RUN_SECONDS
from agentbox.core.ids import uuid7
from agentbox.core.slot_errors import AdapterError, NotFound, PathOutside
from agentbox.sessions import protocol

if TYPE_CHECKING:
    from agentbox.sessions.live_session import LiveSession

_CHUNK: Final = 1 << 20  # bytes of a file in one call
_KEPT_OUTPUT: Final = 1 << 20  # bytes of a terminal, as a client may bound them by outputByteLimit
_KILL_SECONDS: Final = 2.0
Answer = tuple[Literal["result", "error"], Mapping[str, Any]]


@dataclass
class _Terminal:
    n: int
    limit: int


class ClientMethods:
    """Those of one session."""

    def __init__(self, session: "LiveSession") -> None:
        self._session = session
        self._terminals: dict[str, _Terminal] = {}
        self._methods: Mapping[str, Callable[[Mapping[str, Any], Any], Awaitable[Any]]] = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create,
            "terminal/output": self._output,
            "terminal/wait_for_exit": self._wait,
            "terminal/kill": self._kill,
            "terminal/release": self._release,
        }

    async def call(self, message: Mapping[str, Any]) -> Answer:
        """The answer to a request."""
        method = self._methods.get(message["method"])
        if method is None:
            return "error", {
                "code": protocol.METHOD_NOT_FOUND,
                "message": f"{message['method']} is not served in a box",
            }
        try:
            return "result", await method(message.get("params") or {}, message["id"])
        except NotFound as error:
            return "error", {"code": protocol.RESOURCE_NOT_FOUND, "message": error.message}
        except UnicodeDecodeError:
            return "error", {
                "code": protocol.INVALID_PARAMS,
                "message": "cannot read the file: it is not UTF-8 text",
            }
        except AdapterError as error:
            return "error", {
                "code": protocol.INVALID_PARAMS if error.status < 500 else protocol.INTERNAL_ERROR,
                "message": error.message,
                "data": {"kind": error.code},
            }

    def _path(self, path: str) -> str:
        """As sandboxes name a file of the branch. Raises PathOutside."""
        relative = self._session.paths.relative(path)
        if relative is None:
            raise PathOutside(
                f"cannot use {path}: it is not below the workspace",
                hint="use a path below the working directory of the session",
                path=path,
            )
        return f"workspace/{relative}"

    async def _read(self, params: Mapping[str, Any], _id: Any) -> Mapping[str, Any]:
        host, sandbox_id = self._session.environment.host, self._session.stored.sandbox_id
        path, data, size = self._path(params["path"]), bytearray(), 1
        while len(data) < size:
            chunk = await host.read_sandbox_file(sandbox_id, path, offset=len(data), size=_CHUNK)
            data, size = data + chunk.data, chunk.size
            if not chunk.data:
                break
        text = bytes(data).decode()
        if params.get("line") is None and params.get("limit") is None:
            return {"content": text}
        lines = text.splitlines(keepends=True)
        first = max(1, params.get("line") or 1) - 1
        limit = params.get("limit")
        return {"content": "".join(lines[first : None if limit is None else first + limit])}

    async def _write(self, params: Mapping[str, Any], _id: Any) -> Mapping[str, Any]:
        host, sandbox_id = self._session.environment.host, self._session.stored.sandbox_id
        path, upload = self._path(params["path"]), uuid7()
        data = str(params["content"]).encode("utf-8", "surrogatepass")
        for start in range(0, max(1, len(data)), _CHUNK):
            part = data[start : start + _CHUNK]
            last = start + _CHUNK >= len(data)
            await host.write_sandbox_file(sandbox_id, path, upload=upload, data=part, last=last)
        return {}

    async def _create(self, params: Mapping[str, Any], rpc_id: Any) -> Mapping[str, Any]:
        stored = self._session.stored
        cwd = params.get("cwd")
        command, words = params["command"], tuple(params.get("args", ()))
        is_line = not words and " " in command.strip()  # some agents send a line of a shell
        started = await self._session.environment.host.exec_sandbox(
            stored.sandbox_id,
            ("sh", "-c", command) if is_line else (command, *words),
            request_id=f"{stored.session_id}/{stored.generation}/{rpc_id}",
            cwd="" if cwd is None else self._path(cwd).removeprefix("workspace/"),
            env={one["name"]: one["value"] for one in params.get("env", ())},
            stdin=None,
            interactive=False,
            timeout_s=MAX_RUN_SECONDS,
            max_output=_KEPT_OUTPUT,
            detach=True,
        )
        terminal_id = f"terminal-{started.n}"
        limit = min(params.get("outputByteLimit") or _KEPT_OUTPUT, _KEPT_OUTPUT)
        self._terminals[terminal_id] = _Terminal(started.n, limit)
        return {"terminalId": terminal_id}

    async def _output(self, params: Mapping[str, Any], _id: Any) -> Mapping[str, Any]:
        terminal = self._terminal(params)
        output, ended = b"", None
        async for item in self._stream(terminal, follow=False):
            if item.kind in ("stdout", "stderr"):
                output += item.data
            elif item.kind == "exit":
                ended = item.data
        cut = output[-terminal.limit :]
        while cut and cut is not output and cut[0] & 0xC0 == 0x80:  # within a character
            cut = cut[1:]
        result = {
            "output": cut.decode(errors="replace"),
            "truncated": len(cut) < len(output),
        }
        return {**result, **({} if ended is None else {"exitStatus": _status(ended)})}

    async def _wait(self, params: Mapping[str, Any], _id: Any) -> Mapping[str, Any]:
        async for item in self._stream(self._terminal(params), follow=True):
            if item.kind == "exit":
                return _status(item.data)
        return {"exitCode": None, "signal": None}

    async def _kill(self, params: Mapping[str, Any], _id: Any) -> Mapping[str, Any]:
        await self._session.environment.host.end_exec(
            self._session.stored.sandbox_id, self._terminal(params).n, grace_s=_KILL_SECONDS
        )
        return {}

    async def _release(self, params: Mapping[str, Any], _id: Any) -> Mapping[str, Any]:
        await self._kill(params, _id)
        self._terminals.pop(params["terminalId"], None)
        return {}

    def _stream(self, terminal: _Terminal, *, follow: bool) -> Any:
        return self._session.environment.host.stream_exec(
            self._session.stored.sandbox_id, terminal.n, since=0, follow=follow
        )

    def _terminal(self, params: Mapping[str, Any]) -> _Terminal:
        """By its id, which says its number: session-host may have been killed since. The number of
        the agent's own program is none of a terminal."""
        name = params["terminalId"]
        if (found := self._terminals.get(name)) is not None:
            return found
        prefix, _, number = name.partition("-")
        if prefix != "terminal" or not number.isdecimal():
            raise NotFound(f"cannot find terminal {name}", resource="terminal", id=name)
        if int(number) == self._session.stored.program:
            raise NotFound(f"cannot find terminal {name}", resource="terminal", id=name)
        return _Terminal(int(number), _KEPT_OUTPUT)


def _status(data: bytes) -> Mapping[str, Any]:

    ended = json.loads(data)
    return {"exitCode": ended.get("code"), "signal": ended.get("signal")}
