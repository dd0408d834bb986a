"""Runs the program `backup` for one request, and reads its result."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agentbox.box.supervision.rpc import SupervisorClient
from agentbox.core.files.atomic import read_json, replace_json
from agentbox.core.paths import PREFIX_VARIABLE, Paths
from agentbox.plan.names import BACKUP

_POLL_SECONDS: Final = 0.3
_ALIVE: Final = ("STARTING", "RUNNING", "STOPPING")


class BackupProgram(Protocol):
    """What makes a snapshot of a staged directory, or verifies. One request at a time: the next one
    waits.
    """

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The result; None for a program that ended without one. Raises AgentboxError."""
        ...


class SupervisedProgram:
    """In a booted box: supervisord starts it, confined."""

    def __init__(self, paths: Paths) -> None:
        self._paths, self._one = paths, asyncio.Lock()

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        async with self._one:
            return await self._run(request)

    async def _run(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        client = SupervisorClient(self._paths)
        await asyncio.to_thread(_put_request, self._paths, request)
        await asyncio.to_thread(lambda: client.start(BACKUP, wait=False))
        while await asyncio.to_thread(_is_alive, client):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(_POLL_SECONDS)
        return _result(self._paths, request)


class ChildProgram:
    """Without a boot (a bare start of the API): a child process."""

    def __init__(self, paths: Paths) -> None:
        self._paths, self._one = paths, asyncio.Lock()

    async def run(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        async with self._one:
            return await self._run(request)

    async def _run(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        await asyncio.to_thread(_put_request, self._paths, request)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "agentbox.backup"),
            env={PREFIX_VARIABLE: str(self._paths.prefix)},
        )
        try:
            await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        return _result(self._paths, request)


def _is_alive(client: SupervisorClient) -> bool:
    return client.states()[BACKUP].state in _ALIVE


def _put_request(paths: Paths, request: Mapping[str, Any]) -> None:
    paths.backup_run.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths.backup_result.unlink(missing_ok=True)
    replace_json(paths.backup_request, dict(request), mode=0o600, durable=False)


def _result(paths: Paths, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    result = read_json(paths.backup_result)
    return result if isinstance(result, dict) and result.get("id") == request["id"] else None
