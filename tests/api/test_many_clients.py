"""200 clients at once, each with its own token: none is refused, and none is served less than
another."""

import json
import os
import subprocess
import sys

import pytest

from agentbox.core.paths import CHECKOUT

_SCHEDULED = """
import asyncio, sys, time
sys.path.insert(0, sys.argv[1])
import clients
time.monotonic = lambda: float(sys.argv[2])
async def one(): return "kind"
async def at_once(_seconds): pass
async def main():
    found, asyncio.sleep = clients.Found(), at_once
    for number in range(200):
        await clients.scheduled(10, 0.3, number, 200, one, found)
    print(sorted(set(found.served)))
asyncio.run(main())
"""


@pytest.mark.parametrize("clock", ["500.123", "16380.1"])
def test_a_clock_s_rounding_adds_no_request(clock: str) -> None:
    """Three are due in 10 s, also where the sum of clock and offset passes a power of two and loses a digit."""
    argv = [sys.executable, "-c", _SCHEDULED, str(CHECKOUT / "bench"), clock]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    assert (
        subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout == "[3]\n"
    )


@pytest.mark.timed  # a client repeats a call whose response takes too long
def test_two_hundred_clients_are_all_served(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A mixed load of 10 s over four slots. Response times are measured by bench/clients.py: on a
    busy machine they say nothing here."""
    out = tmp_path / "clients.json"
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "bench/clients.py"), "--seconds", "10", "--rate", "0.3", "--out", str(out)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert out.exists(), done.stderr
    told = json.loads(out.read_text())["claims"]
    whole = told[0]["extra"]
    assert whole["errors"] == {}
    assert whole["of_a_client"] == {"least": 3, "median": 3, "most": 3}
    assert len(told) == 11
    assert sum(row["n"] for row in told[:-1]) == whole["requests"] == 600
    assert whole["rss_kib"][-1] < 200 << 10
