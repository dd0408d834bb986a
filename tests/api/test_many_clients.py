"""200 clients at once, each with a token of its own: nobody is refused, and nobody is served less than another."""

import json
import os
import subprocess
import sys

import pytest

from agentbox.settings import CHECKOUT


@pytest.mark.timed  # a client asks again where an answer takes too long
def test_two_hundred_clients_are_all_served(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A mixed load of 10 s over four slots. How long an answer takes is for bench/clients.py: a busy machine decides it here."""
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
