"""200 clients at once, each with a token of its own, reading and writing beads, memory, pods and events of one API.

`python bench/clients.py [--seconds N] [--clients N] [--rate N] [--out FILE]`. An API is started below a folder, with its slots on
a real disk. Each client is an `AsyncBoxClient` on its own connection and sends on its own schedule; a request counts from the
moment it was due, so that a server that stalls is not spared those that waited. The peer is a bare starlette route under
uvicorn, called by as many httpx clients on the same schedule in the same run: what it costs is the clients' and HTTP's own.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import uvloop
from measure import Claim, run_main, write_results
from support.api_box import ApiBox
from support.ports import free_port

from agentbox.client import ApiError, AsyncBoxClient, BoxUnreachable

SCOPES = [
    f"{slot}:{verb}" for slot in ("beads", "pods", "memory", "events") for verb in ("read", "write")
]
BODY = random.Random(1).randbytes(16 << 10)
HELLO = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def hello(request): return JSONResponse({"hello": "world"})
uvicorn.run(Starlette(routes=[Route("/", hello)]), port=%d, log_level="error", loop="uvloop", access_log=False)
"""
GROWTH = 1.1  # of the resident memory, from the middle of the load to 3 s after it


@dataclass
class Found:
    """What the clients saw."""

    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    served: list[int] = field(default_factory=list)  # requests of each client
    rss: list[int] = field(
        default_factory=list
    )  # KiB: before the load, halfway, after it, and 3 s later


def rss(pid: int) -> int:
    """Resident KiB of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


class Worker:
    """One client: what it wrote is what it reads."""

    def __init__(self, box: AsyncBoxClient, number: int) -> None:
        self._box, self._chance, self._name = box, random.Random(number), f"c{number}"
        self._beads: list[str] = []
        self._written = 0

    def kind(self) -> str:
        """What to do next: a read of what there is, or a write."""
        kind = self._chance.choice(list(KINDS))
        return (
            kind
            if self._beads and self._written
            else self._chance.choice(["beads.create", "pods.write"])
        )

    async def create(self) -> None:
        """A bead with a body of 200 characters."""
        bead = await self._box.call(
            "create_epic", body={"title": f"{self._name}", "body": "x" * 200}
        )
        self._beads = [*self._beads[-9:], bead["id"]]

    async def show(self) -> None:
        """One of its own."""
        await self._box.call("show_bead", {"id": self._chance.choice(self._beads)})

    async def ready(self) -> None:
        """The first ten."""
        await self._box.call("ready_beads", query={"limit": 10})

    async def store(self) -> None:
        """One of twenty keys."""
        value = {"text": f"the whale number {self._chance.randrange(1000)} of {self._name}", "n": 1}
        await self._box.memory.store(f"k{self._chance.randrange(20)}", value, namespace=self._name)

    async def retrieve(self) -> None:
        """One of twenty keys, there or not."""
        await self._box.memory.retrieve(f"k{self._chance.randrange(20)}", namespace=self._name)

    async def search(self) -> None:
        """In its own namespace."""
        await self._box.memory.search("a whale at sea", namespaces=(self._name,), limit=5)

    async def write(self) -> None:
        """16 KiB."""
        await self._box.pods.write(f"{self._name}/o{self._written % 10}", BODY)
        self._written += 1

    async def read(self) -> None:
        """One of its own, whole."""
        assert (
            await self._box.pods.read(
                f"{self._name}/o{self._chance.randrange(min(10, self._written))}"
            )
            == BODY
        )

    async def append(self) -> None:
        """One event of 200 characters."""
        await self._box.call(
            "append_events", body={"events": [{"type": "bench.tick", "data": {"x": "y" * 200}}]}
        )

    async def journal(self) -> None:
        """The first ten."""
        await self._box.call("read_events", query={"limit": 10})


KINDS: dict[str, Callable[[Worker], Awaitable[None]]] = {
    "beads.create": Worker.create, "beads.show": Worker.show, "beads.ready": Worker.ready, "memory.store": Worker.store,
    "memory.retrieve": Worker.retrieve, "memory.search": Worker.search, "pods.write": Worker.write, "pods.read": Worker.read,
    "events.append": Worker.append, "events.read": Worker.journal,
}  # fmt: skip


async def scheduled(
    seconds: float,
    rate: float,
    number: int,
    clients: int,
    one: Callable[[], Awaitable[str]],
    found: Found,
) -> None:
    """Sends `rate` requests a second, evenly after the other clients; counts each from when it was due."""
    began, made = time.monotonic() + number / clients / rate, 0
    while (
        offset := made / rate
    ) < seconds:  # of the sum with a clock's value, rounding makes one request more
        due = began + offset
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        try:
            kind = await one()
        except ApiError as error:
            kind = f"{error.status} {error.code}"
            found.errors[kind] += 1
        except (BoxUnreachable, httpx.HTTPError) as error:
            found.errors[type(error).__name__] += 1
        else:
            found.samples.setdefault(kind, []).append((time.monotonic() - due) * 1000)
        made += 1
    found.served.append(made)


async def load(box: ApiBox, clients: int, rate: float, seconds: float) -> Found:
    """The mixed load."""
    found, pid = Found(), box.process.pid if box.process else 0
    with box.client() as admin:
        made = [
            admin.call("create_token", body={"name": f"c{n}", "scopes": SCOPES})["value"]
            for n in range(clients)
        ]
    boxes = [AsyncBoxClient(box.url, token=token, timeout=30) for token in made]
    found.rss.append(rss(pid))

    def turn(worker: Worker) -> Callable[[], Awaitable[str]]:
        async def one() -> str:
            kind = worker.kind()
            await KINDS[kind](worker)
            return kind

        return one

    turns = [turn(Worker(client, number)) for number, client in enumerate(boxes)]
    running = [
        asyncio.create_task(scheduled(seconds, rate, n, clients, one, found))
        for n, one in enumerate(turns)
    ]
    await asyncio.sleep(seconds / 2)
    found.rss.append(rss(pid))
    await asyncio.gather(*running)
    found.rss.append(rss(pid))
    for client in boxes:
        await client.aclose()
    await asyncio.sleep(3)
    found.rss.append(rss(pid))
    return found


async def peer(clients: int, rate: float, seconds: float) -> Found:
    """The same number of clients and requests, of a route that does nothing."""
    port, found = free_port(), Found()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HELLO % port)
    url = f"http://127.0.0.1:{port}/"
    try:
        async with httpx.AsyncClient(trust_env=False) as probe:
            for _ in range(200):
                try:
                    await probe.get(url)
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.05)
        https = [httpx.AsyncClient(trust_env=False, timeout=30) for _ in range(clients)]

        def turn(http: httpx.AsyncClient) -> Callable[[], Awaitable[str]]:
            async def one() -> str:
                (await http.get(url)).raise_for_status()
                return "peer.hello"

            return one

        await asyncio.gather(
            *(
                scheduled(seconds, rate, n, clients, turn(http), found)
                for n, http in enumerate(https)
            )
        )
        for http in https:
            await http.aclose()
    finally:
        process.terminate()
        await process.wait()
    return found


def claims_of(found: Found, other: Found, words: str) -> list[Claim]:
    """One claim a kind, the peer last; what is of the whole run stands in the first."""
    claims = [
        Claim(kind, "ms", samples, None, words, "peer.hello", {})
        for kind, samples in sorted(found.samples.items())
    ]
    ordered = sorted(found.served)
    claims[0].extra = {
        "errors": dict(found.errors), "rss_kib": found.rss, "requests": sum(ordered),
        "of_a_client": {"least": ordered[0], "median": ordered[len(ordered) // 2], "most": ordered[-1]},
    }  # fmt: skip
    peers = other.samples["peer.hello"]
    return [
        *claims,
        Claim("peer.hello", "ms", peers, None, words, "", {"errors": dict(other.errors)}),
    ]


def main() -> int:
    """Keeps every sample in results/clients.json. 1 when a request failed, or the process grew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rate", type=float, default=0.5, help="requests a second of each client")
    parser.add_argument("--runs", type=int, help="not used: the load lasts --seconds")
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    try:
        with ApiBox(folder, orchestrator=False) as box:
            found = uvloop.run(load(box, given.clients, given.rate, given.seconds))
    finally:
        shutil.rmtree(folder)
    other = uvloop.run(peer(given.clients, given.rate, min(15.0, given.seconds)))
    words = f"{given.clients} clients, {given.rate:g} requests a second each, {given.seconds:g} s, one API process"
    claims = claims_of(found, other, words)
    write_results("clients", claims, given.out)
    print(claims[0].extra)
    return int(bool(found.errors) or found.rss[-1] > GROWTH * found.rss[1])


if __name__ == "__main__":
    run_main(main)
