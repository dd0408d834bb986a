"""Hundred agents at once, and a thousand: what the cap says to those that are too many, and what a box does whose cap is raised.

`python bench/many.py [--quick] [--docker N] [--image IMAGE]`. Each time a box below a folder (real boot, supervisord, API, gateway,
agent-host). First the cap as it is: a hundred idle agents are asked for at once, then a thousand, of which all beyond the cap are
refused. Then a box whose `adapters.orchestrator.max_agents` is a thousand, profile minimal: until each has put out a line, what
they weigh, what watching them costs, until all have ended. `--docker N` runs N containers at once beside the hundred; 0, or a
machine without docker, leaves that out. A file system where many files were deleted in the last minutes is slow to make new ones
(ext4 looks for an inode that was not freed just now: 0.5 ms each, six an agent), so measure with a fresh one on /var/tmp.

Exit 1 where an agent within the cap did not start, one beyond it was not refused with the limit's name, one did not end, or a
process, port, token, branch or temp file was left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/api"))

import httpx
from agents import MANY, an_image, cpu_of, docker_at_once, first_byte, launcher_of
from leftovers import left_behind, pss, pss_of_reapers, temp_files
from measure import Claim, run_main, write_results
from test_supervised import TOKEN, Sealed, plan, started

from agentbox.client import ApiError, AsyncBoxClient, every_async
from agentbox.core.errors import AgentboxError
from agentbox.policy.limits.reserve import required_tasks

# It waits without another program, which profile minimal would not let it run.
IDLE = {
    "name": "idle",
    "argv": ["/bin/sh", "-c", "echo up; read never"],
    "profile": "minimal",
    "stdin": "pipe",
}
_CLIENTS = 10
_SIDE_BY_SIDE = 100  # requests under way at a time, so that it is agents that are many here, and not connections
_WATCHED_SECONDS = 5.0
_LATE = 120.0  # seconds for a start, and for the end of all
_FILES = 16384  # resources.nofile of a manifest that does not say it
_OVER = ("exited", "failed", "lost")


@dataclass
class Asked:
    """Of so many agents. `refused`: how many by HTTP status and code; `said`: the first such problem document."""

    seconds: float = 0.0
    ids: list[str] = field(default_factory=list)
    living: int = 0  # of all that were started, when the last had been answered
    refused: Counter[str] = field(default_factory=Counter)
    said: dict[str, Any] = field(default_factory=dict)
    broken: Counter[str] = field(default_factory=Counter)


class Crowd:
    """Agents of one box, asked for over ten clients."""

    def __init__(self, box: Sealed) -> None:
        self._url = f"http://127.0.0.1:{box.plan.api.port}"
        self._boxes: list[AsyncBoxClient] = []
        self._gate = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def __aenter__(self) -> Crowd:
        self._boxes = [
            AsyncBoxClient(self._url, token=TOKEN, timeout=_LATE) for _ in range(_CLIENTS)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for box in self._boxes:
            await box.aclose()

    async def ask(self, count: int) -> Asked:
        """Until each has put out its line, or was refused."""
        found, began = Asked(), time.perf_counter()
        await asyncio.gather(*(self._one(number, found) for number in range(count)))
        found.seconds = time.perf_counter() - began
        found.living = await self._living()
        return found

    async def _one(self, number: int, found: Asked) -> None:
        async with self._gate:
            try:
                found.ids.append(await first_byte(self._boxes[number % _CLIENTS], IDLE))
            except ApiError as error:
                found.refused[f"{error.status} {error.code}"] += 1
                found.said = found.said or dict(error.problem)
            except (AgentboxError, AssertionError, httpx.HTTPError, OSError) as error:
                found.broken[repr(error)] += 1

    async def end(self, ids: Sequence[str]) -> float:
        """Seconds until all of them have ended. Raises AssertionError where they do not."""
        began = time.perf_counter()

        async def one(number: int, agent_id: str) -> None:
            async with self._gate:
                with contextlib.suppress(ApiError):
                    await self._boxes[number % _CLIENTS].agents.terminate(agent_id, 1, grace_s=0)

        await asyncio.gather(*(one(number, agent_id) for number, agent_id in enumerate(ids)))
        while await self._living():
            assert time.perf_counter() < began + _LATE, (
                f"agents live on {_LATE:g} s after they were ended"
            )
            await asyncio.sleep(0.05)
        return time.perf_counter() - began

    async def _living(self) -> int:
        """Agents of that box that are not over."""
        agents = every_async(self._boxes[0].agents.list, limit=500)
        return sum([one.state not in _OVER async for one in agents])


def with_cap(cap: int) -> Any:
    """A plan whose orchestrator takes that many, with the processes that validation asks for, and open files as by default."""
    made = plan()
    slot = made.slots["orchestrator"]
    files = min(_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return replace(
        made, slots={**made.slots, "orchestrator": replace(slot, options={**slot.options, "max_agents": cap})},
        resources=replace(made.resources, nofile=files, pids=required_tasks(cap, made.limits.pids)),
    )  # fmt: skip


def in_a_box(cap: int, work: Any) -> tuple[Any, list[str]]:
    """What `work(box)` gives, and a sentence for each thing that is left."""
    with started(with_cap(cap)) as box:
        before = temp_files(box)
        found = asyncio.run(work(box))
        said = left_behind(box, before, stopped=False)
        box.box.stop()
        return found, said + left_behind(box, before, stopped=True)


async def at_the_cap(box: Sealed, many: int, asked: int) -> tuple[Asked, Asked, Asked]:
    """So many at once, then many more than there is room for, then one when there is room again."""
    async with Crowd(box) as crowd:
        some = await crowd.ask(many)
        await crowd.end(some.ids)
        beyond = await crowd.ask(asked)
        await crowd.end(beyond.ids)
        one = await crowd.ask(1)
        await crowd.end(one.ids)
    return some, beyond, one


async def beyond_it(box: Sealed, asked: int) -> tuple[Asked, dict[str, float]]:
    """All of them at a time. Memory in bytes of proportional size."""
    host = box.pid("agent-host")
    async with Crowd(box) as crowd:
        idle = pss(box)
        found = await crowd.ask(asked)
        before = cpu_of(launcher_of(host))
        await asyncio.sleep(_WATCHED_SECONDS)
        share = (cpu_of(launcher_of(host)) - before) / _WATCHED_SECONDS
        weight = (pss(box) - idle, pss_of_reapers(box))
        ended = await crowd.end(found.ids)
    return found, {
        "share": share,
        "control": float(weight[0]),
        "reapers": float(weight[1]),
        "ended": ended,
    }


def wrong(many: int, asked: int, default: tuple[Asked, Asked, Asked], raised: Asked) -> list[str]:
    """A sentence for each broken promise."""
    some, beyond, one = default
    said = [
        f"{count} times: {what}" for row in (*default, raised) for what, count in row.broken.items()
    ]
    for name, row, want in (
        ("at the cap", some, many),
        ("after room was made", one, 1),
        ("with the cap raised", raised, asked),
    ):
        if len(row.ids) != want or row.living != want:
            said.append(
                f"{name}: {len(row.ids)} of {want} agents started, {row.living} live; refused: {dict(row.refused)}"
            )
    if len(beyond.ids) != MANY or sum(beyond.refused.values()) != asked - MANY:
        said.append(
            f"beyond the cap of {MANY}: {len(beyond.ids)} started, {dict(beyond.refused)} refused, of {asked}"
        )
    if (
        beyond.said.get("config_path") != "adapters.orchestrator.max_agents"
        or len(beyond.refused) > 1
    ):
        said.append(f"the refusal does not name the limit: {dict(beyond.refused)} {beyond.said}")
    return said


def claims_of(
    many: int,
    asked: int,
    default: tuple[Asked, Asked, Asked],
    raised: Asked,
    weights: dict[str, float],
) -> list[Claim]:
    some, beyond, _ = default
    mib, each = 1 << 20, max(1, len(raised.ids))
    how = f"{_CLIENTS} clients, at most {_SIDE_BY_SIDE} requests under way, profile minimal"
    said = {"started": len(beyond.ids), "refused": dict(beyond.refused), "said": beyond.said}
    bound = 1.1 if many == MANY else None
    return [
        Claim(f"{many} agents at once", "s", [some.seconds], bound, f"{how}, until each has put out a line", f"{many} docker runs at once"),
        Claim(f"{asked} asked for, cap {MANY}", "s", [beyond.seconds], None, "until each was started or refused", extra=said),
        Claim(f"{asked} agents at once, cap raised", "s", [raised.seconds], None, f"{how}, until each has put out a line", extra={"started": len(raised.ids), "living": raised.living}),
        Claim(f"{asked} agents: control plane's memory, each", "MiB", [weights["control"] / each / mib], None, "PSS of API, gateway, agent-host and launcher beyond that of the idle box"),
        Claim(f"{asked} agents: reaper's memory, each", "MiB", [weights["reapers"] / each / mib], None, "PSS"),
        Claim(f"{asked} agents: watching them idle", "CPU s/s", [weights["share"]], None, f"launcher and walker, over {_WATCHED_SECONDS:g} s"),
        Claim(f"{asked} agents: until all have ended", "s", [weights["ended"]], None, "terminate without grace, as many requests under way"),
    ]  # fmt: skip


def main() -> int:
    """Exit 1 with a sentence for each broken promise."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="20 at once, 130 in place of a thousand, 5 docker runs"
    )
    parser.add_argument(
        "--docker", type=int, default=MANY, help="docker runs at once; 0 leaves docker out"
    )
    parser.add_argument("--image", default="")
    parser.add_argument("--runs", type=int, help="not used: each is done once")
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    many, asked, runs = (
        (20, MANY + 30, min(5, given.docker)) if given.quick else (MANY, 1000, given.docker)
    )
    default, said = in_a_box(MANY, lambda box: at_the_cap(box, many, asked))
    (raised, weights), left = in_a_box(asked, lambda box: beyond_it(box, asked))
    claims = claims_of(many, asked, default, raised, weights)
    if runs:
        claims.append(docker_at_once(given.image or an_image(), runs))
    write_results("many", claims, given.out)
    said += left + wrong(many, asked, default, raised)
    for sentence in said:
        print(sentence, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    run_main(main)
