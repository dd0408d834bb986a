"""Ten agents at once in a real box, six of them hogs, while each supervised program is killed in turn: who notices, and what is left.

`python bench/ten_agents.py [--seconds N] [--quick]`. A box below a folder (real boot, supervisord, API, gateway, agent-host) runs
four agents that send back what they are sent over the API's WebSocket, and one hog of each kind, started again whenever it ends;
a writer each writes to beads, events, memory and pods. In the second half every program that the plan keeps running is killed
with SIGKILL, in turn. Latencies of the windows from a kill to 5 s after the box is ready are reported apart.

Exit 1 where a neighbour or the API left its budget outside of those windows, or refused; where an acknowledged write is not
there at the end, or an agent that was started is unknown, or one died with another program than agent-host; where memory of
the control plane grew, or a process, port, token, branch or temp file was left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/api"))

from agents_kills import AFTER, Kill, apart, in_window, kill_in_turn
from leftovers import left_behind, temp_files
from measure import Claim, percentile, write_results
from ten_load import KINDS, NEIGHBOURS, Load, Seen
from ten_writers import Writers
from test_supervised import Sealed, plan, started

ROUND_TRIP, LIVEZ, LISTING = (
    100.0,
    30.0,
    100.0,
)  # ms, p95; LIVEZ is the bound of an idle box, held under load
GROWTH = 1.1  # of the control plane's memory, from the second quarter of the time without kills to its last
_ROUNDS = 2  # kills of each program in a run of five minutes or more
_MIB = 1 << 20


@dataclass
class Run:
    """What there is to judge."""

    alone: Seen
    seen: Seen
    kills: list[Kill]
    writers: Writers
    seconds: float


def _times(seen: Seen) -> dict[str, tuple[list[tuple[float, float]], float]]:
    return {
        "round trip of a neighbour": (seen.round_trips, ROUND_TRIP),
        "livez": (seen.livez, LIVEZ),
        "GET /v1/agents": (seen.listing, LISTING),
    }


def claims_of(run: Run) -> list[Claim]:
    """The budgets, beside the same without the hogs; what the windows of the kills cost; what was written."""
    where = f"{NEIGHBOURS} neighbours, {len(KINDS)} hogs ({', '.join(KINDS)}) and 4 writers for {run.seconds:g} s"
    claims = [Claim(f"neighbours alone: {name}", "ms", [one for _, one in samples]) for name, (samples, _) in _times(run.alone).items()]  # fmt: skip
    near_all = []
    for name, (samples, bound) in _times(run.seen).items():
        far, near = apart(samples, run.kills)
        claims.append(Claim(f"ten agents: {name}", "ms", far, bound, f"{where}; windows of kills apart", f"neighbours alone: {name}"))  # fmt: skip
        near_all += [
            Claim(f"{program} killed: {name}", "ms", values, None, f"from the kill to {AFTER:g} s after ready", f"ten agents: {name}")
            for program, values in near.items() if values
        ]  # fmt: skip
    claims[-1].extra = {
        "ends": dict(run.seen.ends),
        "errors_in_windows": dict(_errors(run, inside=True)),
    }
    claims += near_all
    claims.append(Claim("ten agents: control plane's memory", "MiB", [one / _MIB for _, one in run.seen.memory], None, f"{where}; PSS, reapers left out"))  # fmt: skip
    for program in dict.fromkeys(one.program for one in run.kills):
        mine = [one for one in run.kills if one.program == program]
        agents = dict(sum((Counter(one.agents) for one in mine), Counter()))
        claims.append(Claim(f"{program} killed to ready", "s", [one.seconds for one in mine], None, "SIGKILL under that load", extra={"agents": agents}))  # fmt: skip
    counts = {slot: one.counts for slot, one in run.writers.by_slot.items()}
    lost = [float(len(one.acknowledged - one.found)) for one in run.writers.by_slot.values()]
    return [*claims, Claim("ten agents: acknowledged writes that are lost", "writes", lost, 0.0, "a slot each, read back at the end", extra=counts)]  # fmt: skip


def _errors(run: Run, *, inside: bool) -> Counter[str]:
    """What was refused or broke: within the windows of kills, or outside."""
    return Counter(
        what for at, what in run.seen.errors if (in_window(at, at, run.kills) is not None) == inside
    )


def wrong(run: Run, claims: Sequence[Claim]) -> list[str]:
    """A sentence for each budget that was not held."""
    said = [
        f"{claim.name}: p95 {percentile(claim.samples, 0.95):.1f} {claim.unit}, must be {claim.must_p95:g}"
        for claim in claims
        if claim.must_p95 is not None and percentile(claim.samples, 0.95) > claim.must_p95
    ]
    said += [sentence for one in run.kills for sentence in one.wrong]
    said += [
        f"outside of every kill's window, {count} times: {what}"
        for what, count in _errors(run, inside=False).items()
    ]
    silent = [
        kind for kind in KINDS if kind not in {end.partition(":")[0] for end in run.seen.ends}
    ]
    return (
        said
        + run.writers.wrong()
        + _grown(run)
        + [f"no {kind} hog came to an end" for kind in silent]
    )


def _grown(run: Run) -> list[str]:
    first = run.kills[0].at if run.kills else float("inf")
    before = [value for at, value in run.seen.memory if at < first]
    quarter = len(before) // 4
    if not quarter:
        return []
    level = percentile(before[quarter : 2 * quarter], 0.5)
    ends = {
        "": before[-quarter:],
        " after the kills": [value for at, value in run.seen.memory if at > first][-quarter:],
    }
    return [
        f"memory of the control plane grew from {level / _MIB:.0f} to {percentile(values, 0.5) / _MIB:.0f} MiB{when}"
        for when, values in ends.items()
        if values and percentile(values, 0.5) > GROWTH * level
    ]


async def load(box: Sealed, seconds: float) -> Run:
    """Neighbours alone, then all ten; half of the time nothing is killed."""
    async with Load(box, 0) as quiet:
        await asyncio.sleep(min(30, seconds / 4))
    async with Writers(box) as writers, Load(box, min(30, seconds / 4)) as ten:
        await asyncio.sleep(seconds / 2)
        kills = await kill_in_turn(box, writers, seconds / 2, _ROUNDS if seconds >= 300 else 1)
    return Run(quiet.seen, ten.seen, kills, writers, seconds)


def main() -> int:
    """Exit 1 with a sentence for each broken promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--quick", action="store_true", help="60 s")
    parser.add_argument("--runs", type=int, help="not used: the load lasts --seconds")
    parser.add_argument(
        "--out", type=Path, help="keep the samples in this file, not in bench/results"
    )
    given = parser.parse_args()
    with started(plan()) as box:
        before = temp_files(box)
        run = asyncio.run(load(box, 60.0 if given.quick else given.seconds))
        said = left_behind(box, before, stopped=False)
        box.box.stop()
        said += left_behind(box, before, stopped=True)
    claims = claims_of(run)
    said += wrong(run, claims)
    write_results("ten_agents", claims, given.out)
    print(dict(run.seen.ends), "in windows:", dict(_errors(run, inside=True)))
    for sentence in said:
        print(sentence, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
