"""Ten agents at once in a real box, six of them hogs: whether the others and the API notice, and what is left at the end.

`python bench/ten_agents.py [--seconds N] [--quick] [--kill]`. A box below a folder (real boot, supervisord, API, gateway,
agent-host) runs four agents that send back what they are sent over the API's WebSocket, and one hog of each kind, started
again whenever it ends. `--kill` then kills each supervised program with SIGKILL, one after another, under the same load, and says how soon
`/ready` answered 200 again and what became of the agents. Exit 1 where a neighbour or the API left its budget, memory of the
control plane grew, or a process, port, token, branch or temp file was left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/api"))

from agents_kills import Kill, kill_each
from leftovers import left_behind, pss, temp_files
from measure import Claim, keep, percentile
from test_supervised import TOKEN, Sealed, plan, started

from agentbox.client import ApiError, AsyncBoxClient, BoxUnreachable
from agentbox.ids import uuid7
from agentbox.testing.hogs import HOGS

KINDS = ("cpu", "memory of many", "processes", "disk", "output", "descriptors")
NEIGHBOURS = 10 - len(KINDS)
ROUND_TRIP, LIVEZ, LISTING = 100.0, 30.0, 100.0  # ms, p95; livez is box.md 10
GROWTH = 1.1  # of the control plane's memory, from the second quarter to the last
_LINE = b"a line of the neighbour's\n"
_GONE = (ApiError, BoxUnreachable, httpx.HTTPError, OSError)


@dataclass
class Seen:
    """What the bench saw. Times in milliseconds, memory in bytes of proportional size."""

    round_trips: list[float] = field(default_factory=list)
    livez: list[float] = field(default_factory=list)
    listing: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


class Load:
    """The neighbours, and the hogs unless there are to be none, until it is left. A hog that nothing else ends has `wall` seconds."""

    def __init__(self, box: Sealed, wall: float) -> None:
        self.box, self.wall, self.seen = box, wall, Seen()
        self._tasks: list[asyncio.Task[None]] = []
        self._url = f"http://127.0.0.1:{box.plan.api.port}"
        self._client = AsyncBoxClient(self._url, token=TOKEN)

    async def __aenter__(self) -> Load:
        work = [*(self._hog(kind) for kind in KINDS if self.wall), *(self._neighbour(at) for at in range(NEIGHBOURS))]
        work += [self._ask("/livez", 0.02, self.seen.livez), self._ask("/v1/agents?limit=100", 0.2, self.seen.listing), self._weigh()]  # fmt: skip
        self._tasks = [asyncio.create_task(one) for one in work]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        failed = await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in failed:
            if isinstance(one, Exception):
                self.seen.errors[type(one).__name__] += 1
        for agent in [one for one in await self._alive() if not one.exit]:
            with contextlib.suppress(*_GONE):
                await self._client.agents.terminate(agent.agent_id, agent.generation, grace_s=0)
        await self._client.aclose()

    async def _alive(self) -> list[Any]:
        found, _ = await self._client.agents.list(limit=500)
        return [one for one in found if one.state not in ("exited", "failed", "lost")]

    async def _hog(self, kind: str) -> None:
        hog = HOGS[kind]
        limits = {name: value for name, value in hog.limits.items() if name != "wall_seconds"}
        spec = {
            "name": f"hog-{kind.replace(' ', '-')}", "argv": ["/usr/bin/python3", "-I", "-c", hog.script], "profile": "sandboxed",
            "limits": {**limits, "wall_seconds": self.wall},
        }  # fmt: skip
        while True:
            with self._noted("a hog"):
                agent = await self._client.agents.spawn(spec, request_id=uuid7())
                self.seen.ends[f"{kind}: {await self._reason(agent.agent_id)}"] += 1
            await asyncio.sleep(0.2)

    async def _reason(self, agent_id: str) -> str:
        """Why it ended. Asks, for the stream of one that floods would be a flood here."""
        while True:
            if (end := (await self._client.agents.get(agent_id)).exit) is not None:
                return end.reason
            await asyncio.sleep(0.2)

    async def _neighbour(self, number: int) -> None:
        spec = {"name": f"neighbour-{number}", "argv": ["cat"], "profile": "sandboxed", "stdin": "pipe"}
        while True:
            with self._noted("a neighbour"):
                agent = await self._client.agents.spawn(spec, request_id=uuid7())
                async with self._client.agents.attach(agent.agent_id, agent.generation) as pipes:
                    await self._talk(pipes)
            await asyncio.sleep(0.5)

    async def _talk(self, pipes: Any) -> None:
        back: AsyncIterator[bytes] = aiter(pipes)
        while True:
            sent, left = time.perf_counter(), len(_LINE)
            await pipes.send(_LINE)
            while left > 0:
                left -= len(await anext(back))
            self.seen.round_trips.append((time.perf_counter() - sent) * 1000)
            await asyncio.sleep(0.05)

    async def _ask(self, path: str, pause: float, samples: list[float]) -> None:
        head = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=self._url, headers=head, trust_env=False, timeout=20) as client:
            while True:
                with self._noted(path.partition("?")[0]):
                    sent = time.perf_counter()
                    (await client.get(path)).raise_for_status()
                    samples.append((time.perf_counter() - sent) * 1000)
                await asyncio.sleep(pause)

    async def _weigh(self) -> None:
        while True:
            self.seen.memory.append(float(await asyncio.to_thread(pss, self.box)))
            await asyncio.sleep(2)

    @contextlib.contextmanager
    def _noted(self, what: str) -> Any:
        try:
            yield
        except (*_GONE, StopAsyncIteration) as error:
            self.seen.errors[f"{what}: {type(error).__name__}"] += 1


def claims_of(seen: Seen, alone: Seen, seconds: float) -> list[Claim]:
    """The budgets that were held, or not, beside the same without the hogs."""
    names = ("round trip of a neighbour", "livez", "GET /v1/agents")
    before = [Claim(f"neighbours alone: {name}", "ms", samples) for name, samples in zip(names, (alone.round_trips, alone.livez, alone.listing), strict=True)]  # fmt: skip
    where = f"{NEIGHBOURS} neighbours and {len(KINDS)} hogs ({', '.join(KINDS)}) for {seconds:g} s"
    extra = {"ends": dict(seen.ends), "errors": dict(seen.errors)}
    return [
        *before,
        Claim("ten agents: round trip of a neighbour", "ms", seen.round_trips, ROUND_TRIP, f"{where}, by the API's WebSocket", before[0].name, extra),
        Claim("ten agents: livez", "ms", seen.livez, LIVEZ, where, before[1].name),
        Claim("ten agents: GET /v1/agents", "ms", seen.listing, LISTING, where, before[2].name),
        Claim("ten agents: control plane's memory", "MiB", [one / (1 << 20) for one in seen.memory], None, f"{where}; PSS, reapers left out"),
    ]  # fmt: skip


def wrong(seen: Seen, claims: list[Claim]) -> list[str]:
    """A sentence for each budget that was not held."""
    said = [
        f"{claim.name}: p95 {percentile(claim.samples, 0.95):.1f} {claim.unit}, must be {claim.must_p95:g}"
        for claim in claims
        if claim.must_p95 is not None and percentile(claim.samples, 0.95) > claim.must_p95
    ]
    quarter = len(seen.memory) // 4
    if quarter:
        before, after = (percentile(part, 0.5) for part in (seen.memory[quarter : 2 * quarter], seen.memory[-quarter:]))
        if after > GROWTH * before:
            said.append(f"memory of the control plane grew from {before / 2**20:.0f} to {after / 2**20:.0f} MiB")
    silent = [kind for kind in KINDS if kind not in {end.partition(":")[0] for end in seen.ends}]
    return said + [f"no {kind} hog came to an end" for kind in silent]


async def run(box: Sealed, seconds: float, *, kill: bool) -> tuple[Seen, Seen, list[Kill]]:
    """Neighbours alone, all ten, and where asked the kills under that load."""
    async with Load(box, 0) as load:
        await asyncio.sleep(min(30, seconds / 4))
    alone = load.seen
    async with Load(box, min(30, seconds / 4)) as load:
        await asyncio.sleep(seconds)
        seen = Seen(**{name: value.copy() for name, value in vars(load.seen).items()})
        kills = await kill_each(box) if kill else []
    return alone, seen, kills


def main() -> int:
    """Exit 1 with a sentence for each broken promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--quick", action="store_true", help="40 s")
    parser.add_argument("--kill", action="store_true", help="kill each supervised program afterwards")
    parser.add_argument("--runs", type=int, help="not used: the load lasts --seconds")
    parser.add_argument("--out", type=Path, help="keep the samples in this file, not in bench/results")
    given = parser.parse_args()
    seconds = 40.0 if given.quick else given.seconds
    with started(plan()) as box:
        before = temp_files(box)
        alone, seen, kills = asyncio.run(run(box, seconds, kill=given.kill))
        said = left_behind(box, before, stopped=False)
        box.box.stop()
        said += left_behind(box, before, stopped=True)
    claims = claims_of(seen, alone, seconds)
    said += wrong(seen, claims)
    for one in kills:
        claims.append(Claim(f"ten agents: {one.program} killed to ready", "s", [one.seconds], None, "SIGKILL under the same load", extra={"agents": one.agents}))  # fmt: skip
    keep("ten_agents", claims, given.out)
    print(dict(seen.ends), dict(seen.errors))
    for sentence in said:
        print(sentence, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
