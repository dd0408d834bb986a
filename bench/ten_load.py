"""What ten agents at once do, and what is asked of the API meanwhile: neighbours that answer, hogs that take all they can get."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from leftovers import pss
from support.hogs import HOGS

from agentbox.client import ApiError, AsyncBoxClient, BoxUnreachable
from agentbox.core.ids import uuid7

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/api"))

from test_supervised import TOKEN, Sealed

KINDS = ("cpu", "memory of many", "processes", "disk", "output", "descriptors")
NEIGHBOURS = 10 - len(KINDS)
NEIGHBOUR = "neighbour-"  # how the name of one begins
GONE = (ApiError, BoxUnreachable, httpx.HTTPError, OSError)
_AGAIN = 0.1  # seconds until what a program that is away refused is asked again
_ASKED = str(Path(__file__).with_name("ten_asked.py"))
_OVER = ("exited", "failed", "lost")

Sample = tuple[float, float]  # (when it was asked for, by time.perf_counter, and its value)


@dataclass
class Seen:
    """What the load saw. Times in milliseconds, memory in bytes of proportional size."""

    round_trips: list[Sample] = field(default_factory=list)
    livez: list[Sample] = field(default_factory=list)
    listing: list[Sample] = field(default_factory=list)
    memory: list[Sample] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    errors: list[tuple[float, str]] = field(default_factory=list)


class Load:
    """The neighbours, and the hogs unless there are to be none, until it is left. A hog that nothing else ends has `wall` seconds."""

    def __init__(self, box: Sealed, wall: float) -> None:
        self.box, self.wall, self.seen = box, wall, Seen()
        self._tasks: list[asyncio.Task[None]] = []
        self._url = f"http://127.0.0.1:{box.plan.api.port}"
        self._client = AsyncBoxClient(self._url, token=TOKEN)

    async def __aenter__(self) -> Load:
        work = [
            *(self._hog(kind) for kind in KINDS if self.wall),
            *(self._neighbour(at) for at in range(NEIGHBOURS)),
        ]
        work += [self._ask("/livez", 0.02, self.seen.livez), self._ask("/v1/agents?limit=100", 0.2, self.seen.listing), self._weigh()]  # fmt: skip
        self._tasks = [asyncio.create_task(one) for one in work]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        failed = await asyncio.gather(*self._tasks, return_exceptions=True)
        self.seen.errors += [(0.0, repr(one)) for one in failed if isinstance(one, Exception)]
        found = (await self._client.agents.list(limit=500)).items
        for agent in [one for one in found if one.state not in _OVER]:
            with contextlib.suppress(*GONE):
                await self._client.agents.terminate(agent.agent_id, agent.generation, grace_s=0)
        await self._client.aclose()

    async def _hog(self, kind: str) -> None:
        hog = HOGS[kind]
        limits = {name: value for name, value in hog.limits.items() if name != "wall_seconds"}
        spec = {
            "name": f"hog-{kind.replace(' ', '-')}", "argv": ["/usr/bin/python3", "-I", "-c", hog.script], "profile": "sandboxed",
            "limits": {**limits, "wall_seconds": self.wall},
        }  # fmt: skip
        while True:
            agent = await self._spawned("a hog", spec)
            self.seen.ends[f"{kind}: {await self._reason('a hog', agent.agent_id)}"] += 1
            await asyncio.sleep(0.2)

    async def _spawned(self, what: str, spec: Mapping[str, Any]) -> Any:
        """Asked for under one id until it is there."""
        request_id = uuid7()
        while True:
            with self._noted(f"{what} is started"):
                return await self._client.agents.spawn(spec, request_id=request_id)
            await asyncio.sleep(_AGAIN)

    async def _reason(self, what: str, agent_id: str) -> str:
        """Why it ended. Asks, for the stream of one that floods would be a flood here."""
        while True:
            with self._noted(f"{what} is asked for"):
                if (end := (await self._client.agents.get(agent_id)).exit) is not None:
                    return end.reason
            await asyncio.sleep(2 * _AGAIN)

    async def _neighbour(self, number: int) -> None:
        """Held again after its line broke, for an agent outlives the API; another where it ended."""
        spec = {
            "name": f"{NEIGHBOUR}{number}",
            "argv": ["cat"],
            "profile": "sandboxed",
            "stdin": "pipe",
        }
        agent = None
        while True:
            agent = agent or await self._spawned("a neighbour", spec)
            with self._noted("a neighbour is held"):
                async with self._client.agents.attach(agent.agent_id, agent.generation) as pipes:
                    await self._talk(pipes)
            await asyncio.sleep(_AGAIN)
            with self._noted("a neighbour is asked for"):
                if (await self._client.agents.get(agent.agent_id)).state in _OVER:
                    agent = None

    async def _talk(self, pipes: Any) -> None:
        """Each line is a new one, so that what an earlier holder did not read is not taken for the answer."""
        back: AsyncIterator[bytes] = aiter(pipes)
        heard = b""
        while True:
            sent = time.perf_counter()
            line = b"%r is a line of the neighbour's\n" % sent
            await pipes.send(line)
            while line not in heard:
                heard += await anext(back)
            heard = heard.rpartition(line)[2]
            self.seen.round_trips.append((sent, (time.perf_counter() - sent) * 1000))
            await asyncio.sleep(0.05)

    async def _ask(self, path: str, pause: float, samples: list[Sample]) -> None:
        """From a process of its own (`ten_asked.py`)."""
        words = (str(self.box.plan.api.port), path, str(pause), TOKEN)
        asking = await asyncio.create_subprocess_exec(
            sys.executable,
            _ASKED,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert asking.stdout is not None
        try:
            async for line in asking.stdout:
                sent, found = line.decode().split()
                if found[0].isdigit() and "." in found:
                    samples.append((float(sent), float(found)))
                else:
                    self.seen.errors.append((float(sent), f"{path.partition('?')[0]}: {found}"))
        finally:
            asking.kill()
            await asking.wait()

    async def _weigh(self) -> None:
        while True:
            if found := await asyncio.to_thread(pss, self.box):
                self.seen.memory.append((time.perf_counter(), float(found)))
            await asyncio.sleep(2)

    @contextlib.contextmanager
    def _noted(self, what: str) -> Any:
        try:
            yield
        except (*GONE, StopAsyncIteration) as error:
            self.seen.errors.append((time.perf_counter(), f"{what}: {type(error).__name__}"))
