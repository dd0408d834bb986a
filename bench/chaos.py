"""Each peer killed and started again under load: what was lost, how soon `/ready` told, how soon it served again.

`python bench/chaos.py [--seconds N] [--only NAME]`. A box (the real API) with one external slot and 8 writers, for about N
seconds each (60): the peer is ended as by a crash, is away for 2 s, and comes back; nobody restarts the box. Exit 1 when an
acknowledged write is lost, when `/ready` is wrong for over 5 s, or when an error has no type. `--only` replaces the rows of that
one, beside which stands the host that they were measured on.

Two are unlike the others. The sink of the events holds nobody up: no append may be refused, and `/ready` may say nothing, for no
record waits for a minute (V14). The bridge of a required orchestrator is started again by the box: what was refused is asked for
again under the same request id, and no id may start two processes (O4).
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

from chaos import (
    BEADS,
    MEMORY,
    PODS,
    TRUTH_SECONDS,
    Database,
    Load,
    Outcome,
    Peer,
    box_with,
    harass,
    over_http,
    served_beads,
)
from chaos_agents import Agents, Bridge, over_bridge
from chaos_sink import AWAY, P95_MS, UP, away, over_sink, sink_at
from measure import Claim, write_results
from postgres_server import running
from slot_rooms import solid
from support.api_box import ApiBox

UP_SECONDS, DOWN, ROUND = (
    6.0,
    2.0,
    15.0,
)  # seconds; a round takes longer when the box waits before it tries the peer again
SINK, BRIDGE = "events external-http", "orchestrator external-stdio"
Made = tuple[ApiBox, Peer]
Found = tuple[list[Claim], list[str]]


@contextlib.contextmanager
def over_pg(folder: Path, load: Load) -> Iterator[Made]:
    """A box on a PostgreSQL of its own."""
    with (
        running() as server,
        box_with(folder, load.slot, "external-pg", {"dsn": server.dsn()}) as box,
    ):
        yield box, Database(server)


@contextlib.contextmanager
def over_api(folder: Path) -> Iterator[Made]:
    """A box whose beads are those of another box."""
    with served_beads(folder / "peer") as peer, over_http(folder / "box", peer) as box:
        yield box, peer


@contextlib.contextmanager
def over_solid(folder: Path) -> Iterator[Made]:
    """A box on a Community Solid Server, which takes seconds to start."""
    with (
        solid() as server,
        box_with(
            folder, "pods", "external-solid", {}, endpoint=f"{server.url}/box", auth="none"
        ) as box,
    ):
        yield box, server


PEERS: dict[str, tuple[Load, Callable[[Path], contextlib.AbstractContextManager[Made]]]] = {
    "beads external-pg": (BEADS, lambda folder: over_pg(folder, BEADS)),
    "memory external-pg": (MEMORY, lambda folder: over_pg(folder, MEMORY)),
    "beads external-http": (BEADS, over_api),
    "pods external-solid": (PODS, over_solid),
}


def measure(name: str, folder: Path, kills: int) -> Found:
    """The claims of one class, and a sentence for each broken promise."""
    load, made = PEERS[name]
    with made(folder) as (box, peer):
        out = asyncio.run(harass(box, load, peer, kills=kills, up=UP_SECONDS, down=DOWN))
    where = f"8 writers, peer away for {DOWN:g} s, {kills} times"
    counts = {
        "acknowledged": len(out.acknowledged), "lost": len(out.acknowledged - out.found), "refused": dict(out.refused),
        "written_but_not_acknowledged": len(out.found - out.acknowledged),
    }  # fmt: skip
    back = Claim(
        f"{name}: peer back to first write",
        "s",
        out.back,
        None,
        f"{where}; waits grow with each fall",
    )
    return _truth(name, "degraded", out, where, counts, back), out.wrong()


def measure_sink(name: str, folder: Path, kills: int) -> Found:
    """Appends beside appends of the same run; and when the sink had everything again."""
    with sink_at(folder / "sink") as sink, over_sink(folder / "box", sink) as box:
        out = asyncio.run(away(box, sink, kills=kills, up=UP_SECONDS, down=DOWN))
    where = f"8 writers, an append of 1 KiB each 0.1 s, sink away for {DOWN:g} s, {kills} times"
    counts = {
        "acknowledged": len(out.acknowledged), "lost": out.lost, "refused": dict(out.refused), "at_the_sink": len(out.there),
        "most_waiting": out.behind, "longest_wait_s": out.oldest_s,
    }  # fmt: skip
    claims = [
        Claim(f"{name}: append, {at}", "ms", took, P95_MS, where) for at, took in out.took.items()
    ]
    claims[list(out.took).index(AWAY)].peer = f"{name}: append, {UP}"
    back = Claim(f"{name}: sink back to caught up", "s", out.back, None, where, extra=counts)
    return [*claims, back], out.wrong()


def measure_bridge(name: str, folder: Path, kills: int) -> Found:
    """Agents and runs, each with a request id."""
    with over_bridge(folder) as box:
        agents = Agents(box)
        out = asyncio.run(harass(box, agents.load, Bridge(box), kills=kills, up=UP_SECONDS, down=0))
        ran = agents.processes()
    where = f"8 writers, child killed {kills} times, back by itself"
    counts = {
        "acknowledged": len(agents.started.keys() | out.acknowledged), "ends": dict(Counter(agents.ends.values())),
        "refused": dict(out.refused), "processes": ran.total(), "most_of_one_request": max(ran.values()),
    }  # fmt: skip
    whole = [told + back for told, back in zip(out.told, out.back, strict=True)]
    back = Claim(
        f"{name}: killed to first agent", "s", whole, None, f"{where}; waits grow with each fall"
    )
    return _truth(name, "missing", out, where, counts, back), agents.wrong(out)


def _truth(
    name: str, word: str, out: Outcome, where: str, counts: dict[str, Any], back: Claim
) -> list[Claim]:
    return [
        Claim(f"{name}: killed to {word}", "s", out.told, TRUTH_SECONDS, where, extra=counts),
        back,
        Claim(f"{name}: first write to not {word}", "s", out.cleared, TRUTH_SECONDS, where),
    ]


ALL = {**dict.fromkeys(PEERS, measure), SINK: measure_sink, BRIDGE: measure_bridge}


def main() -> int:
    """Every class, or one."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--only", choices=sorted(ALL))
    arguments.add_argument("--runs", type=int, help="not used: the load lasts --seconds")
    chosen = arguments.parse_args()
    kills = max(1, round(chosen.seconds / ROUND))
    claims, wrong = [], []
    for name in [chosen.only] if chosen.only else ALL:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            found, said = ALL[name](name, Path(folder), kills)
        print(f"{name}: {[claim.extra for claim in found if claim.extra]}")
        claims += found
        wrong += [f"{name}: {sentence}" for sentence in said]
    write_results("chaos", claims, only=f"{chosen.only}:" if chosen.only else "")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
