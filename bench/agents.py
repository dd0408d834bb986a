"""Agents through the API: the first byte of one, a hundred at once, and what watching a hundred costs; beside docker.

`python bench/agents.py [--count N] [--docker N] [--image IMAGE] [--quick] [--before PYTHON]`. An API and an agent-host are started below a folder.
The first byte counts from the call of POST /v1/agents to the first item of output on a stream that was opened after the
answer. `docker run` and `docker exec` count to the first byte on the client's standard output. A hundred at once count from
the first call until each has put out its line. `--docker 0` leaves the peer out, as does a machine without docker.

`--before PYTHON`, the interpreter of another checkout: only the hundred at once, `--count` times in turn with that checkout,
each time in a box of its own, with the processor time of API, agent-host and launcher for each agent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import Claim, docker, run_main, write_results
from support.api_box import TOKEN, ApiBox

from agentbox.client import AsyncBoxClient
from agentbox.core.errors import AgentboxError
from agentbox.core.ids import uuid7
from agentbox.sandbox.launcher import tree

ECHO = {"name": "echo", "argv": ["/bin/echo", "x"], "profile": "minimal"}
IDLE = {
    "name": "idle",
    "argv": ["/bin/sh", "-c", "echo up; exec sleep 1000"],
    "profile": "sandboxed",
}
MANY = 100
_WARM_UPS = 5
_WATCHED_SECONDS = 5.0
_CLIENTS = 10  # connections that ask for a hundred agents
_TICK = os.sysconf("SC_CLK_TCK")


async def first_byte(box: AsyncBoxClient, spec: dict[str, object]) -> str:
    """Starts an agent and returns its id once its first output is here. Raises AssertionError when it ends without."""
    agent = await box.agents.spawn(spec, request_id=uuid7())
    async with contextlib.aclosing(box.agents.stream(agent.agent_id)) as items:
        async for item in items:
            if item.kind == "stdout":
                return agent.agent_id
    raise AssertionError("it ended without a word")


async def one_by_one(url: str, count: int) -> list[float]:
    """Milliseconds to the first byte."""
    samples = []
    async with AsyncBoxClient(url, token=TOKEN) as box:
        for _ in range(_WARM_UPS + count):
            began = time.perf_counter()
            await first_byte(box, ECHO)
            samples.append((time.perf_counter() - began) * 1000)
    return samples[_WARM_UPS:]


async def at_once(
    url: str, launcher: int, up: Callable[[], object] = lambda: None
) -> tuple[float, int, float]:
    """Seconds until a hundred are up, how many failed, and the share of a CPU that the launcher then takes to watch them.
    `up` is called when they are."""
    boxes = [AsyncBoxClient(url, token=TOKEN) for _ in range(_CLIENTS)]
    try:
        began = time.perf_counter()
        found = await asyncio.gather(
            *(first_byte(boxes[number % _CLIENTS], IDLE) for number in range(MANY)),
            return_exceptions=True,
        )
        took = time.perf_counter() - began
        up()
        for error in {str(one) for one in found if isinstance(one, BaseException)}:
            print(f"failed: {error}")
        before = cpu_of(launcher)
        await asyncio.sleep(_WATCHED_SECONDS)
        share = (cpu_of(launcher) - before) / _WATCHED_SECONDS
        ids = [one for one in found if isinstance(one, str)]
        await asyncio.gather(
            *(
                boxes[at % _CLIENTS].agents.terminate(one, 1, grace_s=0)
                for at, one in enumerate(ids)
            )
        )
    finally:
        for box in boxes:
            await box.aclose()
    return took, MANY - len(ids), share


def cpu_of(pid: int) -> float:
    """Seconds of CPU that the launcher and its walker have used: of its children only the walker has none."""
    table = tree.scan()
    parents = {row.parent for row in table.values()}
    walkers = [row.pid for row in table.values() if row.parent == pid and row.pid not in parents]
    return sum(_cpu(one) for one in (pid, *walkers))


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def launcher_of(host: int) -> int:
    """The process that starts and watches all agents."""
    return next(row.pid for row in tree.scan().values() if row.parent == host)


def to_first_byte(*words: str) -> float:
    """Milliseconds until a docker client puts out a byte. Raises AgentboxError when it does not."""
    began = time.perf_counter()
    with subprocess.Popen(
        ["docker", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as client:
        assert client.stdout is not None
        first = client.stdout.read(1)
        took = (time.perf_counter() - began) * 1000
    if not first:
        raise AgentboxError(f"cannot measure: docker {words[0]} put nothing out")
    return took


def beside_docker(image: str, count: int, many: int) -> list[Claim]:
    """The same by docker. `many` at once."""
    plain = ("--network", "none", "--entrypoint", "/bin/echo", image, "x")
    run = [to_first_byte("run", "--rm", *plain) for _ in range(count)]
    held = docker(
        "run", "-d", "--rm", "--network", "none", "--entrypoint", "/bin/sleep", image, "1000"
    ).strip()
    try:
        into = [to_first_byte("exec", held, "/bin/echo", "x") for _ in range(count)]
    finally:
        docker("rm", "-f", held)
    return [
        Claim("docker exec to its first byte", "ms", into, conditions="no network"),
        Claim("docker run to its first byte", "ms", run, conditions="no network, --rm"),
        docker_at_once(image, many),
    ]


def docker_at_once(image: str, many: int) -> Claim:
    """So many `docker run` side by side."""
    plain = ("--network", "none", "--entrypoint", "/bin/echo", image, "x")
    began = time.perf_counter()
    with ThreadPoolExecutor(many) as pool:
        list(pool.map(lambda _: to_first_byte("run", "--rm", *plain), range(many)))
    took = time.perf_counter() - began
    return Claim(f"{many} docker runs at once", "s", [took], conditions="until the last is gone")


def an_image() -> str:
    """The newest image of the product that is here. Raises AgentboxError."""
    found = docker("images", "--format", "{{.Repository}}:{{.Tag}}", "agentbox").split()
    if not found:
        raise AgentboxError(
            "cannot measure docker: no image of agentbox is here", "Build one: ./agentbox.sh build"
        )
    return found[0]


@contextlib.contextmanager
def box_of(python: str) -> Iterator[ApiBox]:
    """A box of the checkout whose interpreter that is."""
    ours, sys.executable = sys.executable, python
    try:
        with (
            tempfile.TemporaryDirectory(dir="/var/tmp", prefix="abx-") as folder,
            ApiBox(Path(folder)) as box,
        ):
            yield box
    finally:
        sys.executable = ours


def one_hundred(python: str) -> tuple[float, int, float]:
    """Seconds until they are up, how many failed, and milliseconds of processor time for each."""
    with box_of(python) as box:
        assert box.host is not None
        assert box.process is not None
        launcher = launcher_of(box.host.pid)
        programs = (box.process.pid, box.host.pid, launcher)
        used = [sum(map(_cpu, programs))]
        took, failed, _ = asyncio.run(
            at_once(box.url, launcher, lambda: used.append(sum(map(_cpu, programs))))
        )
    return took, failed, (used[1] - used[0]) / MANY * 1000


def beside_before(runs: int, before: Path) -> list[Claim]:
    """The hundred of this checkout and of another one, in turn."""
    ours, earlier = zip(
        *((one_hundred(sys.executable), one_hundred(str(before))) for _ in range(runs)), strict=True
    )
    how, used = (
        f"{_CLIENTS} connections, until each has put out a line",
        "API, agent-host and launcher, for each agent",
    )
    name, spent = f"{MANY} agents at once", f"{MANY} agents at once, processor time"
    return [
        claim
        for label, peer, rows in (("", ", before", ours), (", before", "", earlier))
        for claim in (
            Claim(name + label, "s", [row[0] for row in rows], None if label else 1.5, how, peer and name + peer, {"failed": sum(row[1] for row in rows)}),
            Claim(spent + label, "ms", [row[2] for row in rows], None, used, peer and spent + peer),
        )
    ]  # fmt: skip


def measure(count: int, runs: int) -> list[Claim]:
    """Ours."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="abx-") as folder,
        ApiBox(Path(folder)) as box,
    ):
        assert box.host is not None
        first = asyncio.run(one_by_one(box.url, count))
        rounds = [asyncio.run(at_once(box.url, launcher_of(box.host.pid))) for _ in range(runs)]
    failed = sum(row[1] for row in rounds)
    watched = statistics.median(row[2] for row in rounds)
    return [
        Claim("agent through the API to its first byte", "ms", first, 60, "POST, then the stream; profile minimal", "docker exec to its first byte"),
        Claim(f"{MANY} agents at once", "s", [row[0] for row in rounds], 1.5, f"{_CLIENTS} connections, until each has put out a line", f"{MANY} docker runs at once", {"failed": failed}),
        Claim(f"watching {MANY} idle agents", "CPU s/s", [watched], 0.1, f"launcher and walker, over {_WATCHED_SECONDS:g} s"),
    ]  # fmt: skip


def main() -> int:
    """Exit 1 when an agent of a hundred failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", "--count", dest="count", type=int, default=100)
    parser.add_argument(
        "--docker", type=int, default=20, help="of each docker command; 0 leaves docker out"
    )
    parser.add_argument("--image", default="")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="20 agents, 3 of each docker command, 10 docker runs at once",
    )
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    parser.add_argument(
        "--before", type=Path, help="the interpreter of another checkout, measured in turn"
    )
    given = parser.parse_args()
    if given.before:
        claims = beside_before(given.count, given.before)
        write_results("agents", claims, given.out, only=f"{MANY} agents at once")
        return 1 if any(claim.extra.get("failed") for claim in claims) else 0
    count, runs = (20, given.docker and 3) if given.quick else (given.count, given.docker)
    claims = measure(count, 1 if given.quick else 3)
    if runs:
        claims += beside_docker(given.image or an_image(), runs, 10 if given.quick else MANY)
    write_results("agents", claims, given.out)
    return 1 if claims[1].extra["failed"] else 0


if __name__ == "__main__":
    run_main(main)
