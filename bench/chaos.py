"""Each peer killed and started again under load: what was lost, how soon `/ready` told, how soon it served again.

`python bench/chaos.py [--seconds N] [--only NAME]`. A box (the real API) with one external slot and 8 writers, for about N
seconds each (60): the peer is ended as by a crash, is away for 2 s, and comes back; nobody restarts the box. Exit 1 when an
acknowledged write is lost, when `/ready` is wrong for over 5 s, or when an error has no type.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/peers"))

from chaos import BEADS, MEMORY, PODS, TRUTH_SECONDS, Database, Load, Peer, box_with, harass, over_http, served_beads
from measure import Claim, keep
from postgres_server import running
from slot_rooms import solid

from agentbox.testing.api_box import ApiBox

UP, DOWN, ROUND = 6.0, 2.0, 15.0  # seconds; a round takes longer when the box waits before it tries the peer again
Made = tuple[ApiBox, Peer]


@contextlib.contextmanager
def over_pg(folder: Path, load: Load) -> Iterator[Made]:
    """A box on a PostgreSQL of its own."""
    with running() as server, box_with(folder, load.slot, "external-pg", {"dsn": server.dsn()}) as box:
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
        box_with(folder, "pods", "external-solid", {}, endpoint=f"{server.url}/box", auth="none") as box,
    ):
        yield box, server


ALL: dict[str, tuple[Load, Callable[[Path], contextlib.AbstractContextManager[Made]]]] = {
    "beads external-pg": (BEADS, lambda folder: over_pg(folder, BEADS)),
    "memory external-pg": (MEMORY, lambda folder: over_pg(folder, MEMORY)),
    "beads external-http": (BEADS, over_api),
    "pods external-solid": (PODS, over_solid),
}


def measure(name: str, seconds: float) -> tuple[list[Claim], list[str]]:
    """The claims of one class, and a sentence for each broken promise."""
    load, made = ALL[name]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, made(Path(folder)) as (box, peer):
        out = asyncio.run(harass(box, load, peer, kills=max(1, round(seconds / ROUND)), up=UP, down=DOWN))
    where = f"8 writers, peer away for {DOWN:g} s, {len(out.told)} times"
    counts = {
        "acknowledged": len(out.acknowledged), "lost": len(out.acknowledged - out.found), "refused": dict(out.refused),
        "written_but_not_acknowledged": len(out.found - out.acknowledged),
    }  # fmt: skip
    print(f"{name}: {counts}")
    claims = [
        Claim(f"{name}: killed to degraded", "s", out.told, TRUTH_SECONDS, where, extra=counts),
        Claim(f"{name}: peer back to first write", "s", out.back, None, f"{where}; waits grow with each fall"),
        Claim(f"{name}: first write to not degraded", "s", out.cleared, TRUTH_SECONDS, where),
    ]
    return claims, [f"{name}: {sentence}" for sentence in out.wrong()]


def main() -> int:
    """Every class, or one."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--only", choices=sorted(ALL))
    arguments.add_argument("--runs", type=int, help="not used: the load lasts --seconds")
    chosen = arguments.parse_args()
    claims, wrong = [], []
    for name in [chosen.only] if chosen.only else ALL:
        found, said = measure(name, chosen.seconds)
        claims += found
        wrong += said
    if not chosen.only:
        keep("chaos", claims)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
